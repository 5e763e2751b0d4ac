package talos

import (
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"bastide/internal/vault"
)

func TestDigestSurvivesAnotherEncoder(t *testing.T) {
	c, err := render(t, testEstate(t), "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := configloader.NewFromBytes(c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// As `talosctl upgrade-k8s` writes it: with comments and examples.
	commented, err := p.Clone().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(c.Bytes()), "---\n")
	slices.Reverse(docs)
	reordered := strings.Join(docs, "\n---\n")
	for name, text := range map[string]string{"itself": string(c.Bytes()), "comments": string(commented), "order": reordered} {
		if name != "itself" && text == string(c.Bytes()) {
			t.Fatalf("%s: the text is the same", name)
		}
		got, err := Digest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got != c.Digest {
			t.Errorf("%s: digest %s, want %s", name, got, c.Digest)
		}
	}
	if _, err := Digest([]byte("machine: {colour: blue}")); err == nil {
		t.Error("an unknown key has a digest")
	}
}

// A configuration on disk that says the same in other words is not staged.
func TestStagedIsWhatIsOnDiskAndDoesNotRun(t *testing.T) {
	runs, err := render(t, testEstate(t), "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(runs.Bytes()), "---\n")
	slices.Reverse(docs)
	reordered := []byte(strings.Join(docs, "\n---\n"))
	next, err := render(t, testEstate(t), "staging-cp-2")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		texts
		staged bool
	}{
		"the same":     {texts{runs.Bytes(), runs.Bytes()}, false},
		"reordered":    {texts{runs.Bytes(), reordered}, false},
		"another":      {texts{runs.Bytes(), next.Bytes()}, true},
		"as if edited": {texts{reordered, next.Bytes()}, true},
	} {
		for _, wanted := range []string{"", runs.Digest} {
			h, err := c.holding(wanted)
			if err != nil || h.staged != c.staged || h.digest != runs.Digest {
				t.Errorf("%s, wanted %q: staged %t, digest %s: %v", name, wanted, h.staged, h.digest, err)
			}
		}
		if staged, err := c.texts.staged(""); err != nil || staged != c.staged {
			t.Errorf("%s: staged %t: %v", name, staged, err)
		}
	}
	if _, err := (texts{runs.Bytes(), []byte("machine: {colour: blue}")}).holding(""); err == nil {
		t.Error("what cannot be read is not staged for certain")
	}
}

func TestCompareMasksAndSaysWhetherToReboot(t *testing.T) {
	base := testEstate(t)
	have, err := render(t, base, "staging-cp-1")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, patch, line string
		reboot            bool
	}{
		{"nothing", "", "", false},
		{"sysctl", "machine: {sysctls: {a: b}}\n", "+        a: b", false},
		{"API server flag", "cluster: {apiServer: {extraArgs: {v: '2'}}}\n", `+            v: "2"`, false},
		{"document", "apiVersion: v1alpha1\nkind: KmsgLogConfig\nname: k\nurl: 'tcp://172.16.0.9:5170/'\n", "+kind: KmsgLogConfig", false},
		{"firewall", "apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: nodeports\nportSelector: {ports: [30000-32767], protocol: tcp}\ningress: [{subnet: 172.16.0.0/22}]\n", "+name: nodeports", false},
		{"KubePrism port", "machine: {features: {kubePrism: {port: 7446}}}\n", "+            port: 7446", false},
		{"etcd", "cluster: {etcd: {extraArgs: {max-request-bytes: '2097152'}}}\n", `+            max-request-bytes: "2097152"`, true},
		{"udev", "machine: {udev: {rules: ['a']}}\n", "+        rules:", true},
		{"environment", "machine: {env: {A: b}}\n", "+    env:", true},
		{"disk quota", "machine: {features: {diskQuotaSupport: false}}\n", "-        diskQuotaSupport: true", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := testEstate(t)
			e.Talos.Patches.All = []string{write(t, e, "p.yaml", c.patch)}
			e.Talos.Patches.ControlPlane, e.Talos.Patches.All = e.Talos.Patches.All, nil
			want, err := render(t, e, "staging-cp-1")
			if err != nil {
				t.Fatal(err)
			}
			change, err := Compare(have.Bytes(), want.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(change.Lines, "\n")
			if !strings.Contains(text, c.line) || (c.line == "") != (text == "") {
				t.Errorf("diff lacks %q:\n%s", c.line, text)
			}
			if change.Reboot != c.reboot {
				t.Errorf("reboot %v, want %v", change.Reboot, c.reboot)
			}
			for _, s := range bundle(t).Secrets() {
				if strings.Contains(text, s.Reveal()) {
					t.Error("the diff shows a secret")
				}
			}
		})
	}
}

func TestCompareSaysWhenOnlyASecretDiffers(t *testing.T) {
	c, err := render(t, testEstate(t), "staging-system-1")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(c.Bytes()), bundle(t).Machine().TrustdInfo.Token, "abcdef.0123456789abcdef", 1)
	change, err := Compare([]byte(other), c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(change.Lines) != 1 || change.Lines[0] != "only secret values differ" || !change.Reboot {
		t.Errorf("got %+v", change)
	}
	if strings.Contains(strings.Join(change.Lines, ""), "abcdef") || !strings.Contains(vault.Mask, "*") {
		t.Error("a secret shows")
	}
}
