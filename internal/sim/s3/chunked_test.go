package s3

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// signedBody frames content as a client that signs every chunk does.
func signedBody(p proof, chunks []string, trailer string) string {
	var b strings.Builder
	last := p.seed
	frame := func(chunk string) {
		text := algorithmV4 + "-PAYLOAD\n" + p.stamp + "\n" + p.scope + "\n" + last + "\n" + emptySHA256 + "\n" + hexSHA256(chunk)
		last = hex.EncodeToString(mac(p.key, text))
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n", len(chunk), last)
		if chunk != "" {
			b.WriteString(chunk + "\r\n")
		}
	}
	for _, c := range chunks {
		frame(c)
	}
	frame("")
	if trailer != "" {
		text := algorithmV4 + "-TRAILER\n" + p.stamp + "\n" + p.scope + "\n" + last + "\n" + hexSHA256(trailer+"\n")
		b.WriteString(trailer + "\r\n" + trailerSignature + ":" + hex.EncodeToString(mac(p.key, text)) + "\r\n")
	}
	return b.String() + "\r\n"
}

func testProof(payload string) proof {
	return proof{key: signingKey("secret", "20261130", "fr-par"), seed: strings.Repeat("0", 64), stamp: "20261130T000000Z",
		scope: "20261130/fr-par/s3/aws4_request", payload: payload}
}

const crcTrailer = "x-amz-checksum-crc32:2H9+DA=="

func TestChunks(t *testing.T) {
	signed := signedBody(testProof(signedChunks), []string{"hello ", "world"}, "")
	trailed := signedBody(testProof(signedTrailer), []string{"hello ", "world"}, crcTrailer)
	plain := "6\r\nhello \r\n5\r\nworld\r\n0\r\n" + crcTrailer + "\r\n\r\n"
	bare := "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"
	for _, c := range []struct{ name, payload, body, code string }{
		{"signed", signedChunks, signed, ""},
		{"signed, trailer", signedTrailer, trailed, ""},
		{"signed, trailer as some SDKs end it", signedTrailer, strings.Replace(trailed, crcTrailer+"\r\n", crcTrailer+"\n\r\n", 1), ""},
		{"unsigned", unsignedTrailer, plain, ""},
		{"unsigned, no trailer", unsignedTrailer, bare, ""},
		{"changed byte", signedChunks, strings.Replace(signed, "world", "World", 1), "SignatureDoesNotMatch"},
		{"chunks exchanged", signedChunks, strings.Replace(signed, "hello ", "olleh ", 1), "SignatureDoesNotMatch"},
		{"changed trailer", signedTrailer, strings.Replace(trailed, "2H9+", "3H9+", 1), "SignatureDoesNotMatch"},
		{"trailer not signed", signedTrailer, strings.Replace(trailed, trailerSignature, "x-amz-other", 1), "SignatureDoesNotMatch"},
		{"trailer where none is announced", signedChunks, signed[:len(signed)-2] + crcTrailer + "\r\n\r\n", "MalformedTrailerError"},
		{"no signatures", signedChunks, bare, "IncompleteBody"},
		{"signatures unasked", unsignedTrailer, signed, "IncompleteBody"},
		{"cut in a chunk", unsignedTrailer, plain[:8], "IncompleteBody"},
		{"cut before the last chunk", unsignedTrailer, plain[:strings.Index(plain, "0\r\nx")], "IncompleteBody"},
		{"cut in the trailer", unsignedTrailer, plain[:len(plain)-2], "IncompleteBody"},
		{"more behind the end", unsignedTrailer, plain + "x", "IncompleteBody"},
		{"no size", unsignedTrailer, "\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"negative size", unsignedTrailer, "-5\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"enormous size", unsignedTrailer, "ffffffff\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"size too small", unsignedTrailer, "4\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"line feeds only", unsignedTrailer, "5\nhello\n0\n\n", "IncompleteBody"},
		{"trailer without a colon", unsignedTrailer, "0\r\nnonsense\r\n\r\n", "MalformedTrailerError"},
		{"empty", unsignedTrailer, "", "IncompleteBody"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newChunkReader(strings.NewReader(c.body), testProof(c.payload))
			got, err := io.ReadAll(r)
			var no *refusal
			if c.code == "" {
				if err != nil || string(got) != "hello world" {
					t.Errorf("%q, %v", got, err)
				}
				if c.name != "signed" && c.body != bare && r.trailer.Get("X-Amz-Checksum-Crc32") != "2H9+DA==" {
					t.Errorf("trailer %v", r.trailer)
				}
			} else if !errors.As(err, &no) || no.code != c.code {
				t.Errorf("%q, %v, want %s", got, err, c.code)
			}
		})
	}
}

// FuzzChunks: whatever a client sends, the decoder ends, and what it accepts is
// what the framing says.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("6\r\nhello \r\n5\r\nworld\r\n0\r\n"+crcTrailer+"\r\n\r\n"), false)
	f.Add([]byte("0\r\n\r\n"), false)
	f.Add([]byte(signedBody(testProof(signedTrailer), []string{"hello"}, crcTrailer)), true)
	f.Fuzz(func(t *testing.T, in []byte, signed bool) {
		p := testProof(unsignedTrailer)
		if signed {
			p = testProof(signedTrailer)
		}
		got, err := io.ReadAll(newChunkReader(bytes.NewReader(in), p))
		if len(got) > len(in) {
			t.Fatalf("%d bytes came out of %d", len(got), len(in))
		}
		if err != nil {
			var no *refusal
			if !errors.As(err, &no) {
				t.Fatalf("an error that a client would not understand: %v", err)
			}
			return
		}
		again, err := io.ReadAll(newChunkReader(strings.NewReader(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(got), got)), testProof(unsignedTrailer)))
		if len(got) > 0 && (err != nil || !bytes.Equal(got, again)) {
			t.Fatalf("%q framed again is %q, %v", got, again, err)
		}
	})
}

// FuzzBodies: no XML makes the strict reader panic, and what it accepts it
// accepts again when it is written out.
func FuzzBodies(f *testing.F) {
	f.Add([]byte(`<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>`))
	f.Add([]byte(`<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a</Key></Object><Quiet>true</Quiet></Delete>`))
	f.Add([]byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part></CompleteMultipartUpload>`))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]><Tagging>&b;</Tagging>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, c := range []struct {
			root string
			v    func() any
		}{
			{"LifecycleConfiguration", func() any { return &lifecycleConfig{} }},
			{"Delete", func() any { return &deleteBody{} }},
			{"CompleteMultipartUpload", func() any { return &completeBody{} }},
			{"Tagging", func() any { return &tagging{} }},
			{"CORSConfiguration", func() any { return &corsConfig{} }},
			{"AccessControlPolicy", func() any { return &aclBody{} }},
			{"ObjectLockConfiguration", func() any { return &lockConfig{} }},
		} {
			v := c.v()
			if decodeXML(in, c.root, v) != nil {
				continue
			}
			if k, ok := v.(checked); ok && k.check() != nil {
				continue
			}
			out, err := encodeXML(v)
			if err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			if c.root == "AccessControlPolicy" {
				continue // the grantee's type is written and not read
			}
			if err := decodeXML(out, c.root, c.v()); err != nil {
				t.Fatalf("%s was accepted, and is refused written out as %s", in, out)
			}
		}
	})
}

// FuzzPolicy: a policy is understood or refused.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject"],"Resource":"b/*"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := parsePolicy(in, "b")
		if err == nil {
			p.judge(caller{}, "s3:GetObject", "b", "key")
		}
	})
}
