package talos

import "testing"

func BenchmarkRenderOneNode(b *testing.B) {
	e := testEstate(b)
	r, err := NewRenderer(e, bundle(b))
	if err != nil {
		b.Fatal(err)
	}
	n, a := nodeNamed(e, "staging-cp-1"), testAddresses(e)
	for b.Loop() {
		if _, err := r.Node(n, a); err != nil {
			b.Fatal(err)
		}
	}
}
