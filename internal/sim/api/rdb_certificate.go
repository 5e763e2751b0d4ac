package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certifyRDB gives an instance a certificate that it signed itself, with the
// addresses that it has at that moment. Later endpoints are not in it until it
// is renewed.
func (w *world) certifyRDB(i *rdbInstance) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.opts.Log.Error("simulated region: no key for a database", "error", err)
		return
	}
	name := "rw-" + i.ID + ".rdb." + i.Region + ".scw.cloud"
	t := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: now().Add(-time.Hour), NotAfter: now().AddDate(10, 0, 0),
		Subject:  pkix.Name{Country: []string{"FR"}, Province: []string{"Paris"}, Locality: []string{"Paris"}, Organization: []string{"Scaleway"}, CommonName: name},
		DNSNames: []string{name}}
	for _, e := range i.Endpoints {
		t.DNSNames = append(t.DNSNames, e.Address.Addr().String())
		t.IPAddresses = append(t.IPAddresses, net.IP(e.Address.Addr().AsSlice()))
		t.Subject.CommonName = e.Address.Addr().String()
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		w.opts.Log.Error("simulated region: no certificate for a database", "error", err)
		return
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.opts.Log.Error("simulated region: no key for a database", "error", err)
		return
	}
	i.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	i.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func getRDBCertificate(c *call) (any, error) {
	i, err := c.runningRDB()
	if err != nil {
		return nil, err
	}
	return doc{"name": "ssl_certificate", "content_type": "application/x-pem-file", "content": i.Certificate}, nil
}

func renewRDBCertificate(c *call) (any, error) {
	i, err := c.readyRDB(c.path("id"))
	if err != nil {
		return nil, err
	}
	c.certifyRDB(i)
	c.changeRDB(i)
	return nil, nil
}

// scramVerifier is what an engine keeps of a password: enough to check one, and
// not enough to use it (RFC 5803). Passwords are taken as they are: those that
// are no ASCII would have to be normalised first.
func scramVerifier(password string) string {
	const rounds = 4096
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails, by the package's contract
	salted, err := pbkdf2.Key(sha256.New, password, salt[:], rounds, sha256.Size)
	if err != nil {
		return "" // no hash is allowed here; nobody can log in then
	}
	sign := func(text string) []byte {
		m := hmac.New(sha256.New, salted)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	stored, text := sha256.Sum256(sign("Client Key")), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt[:]), text(stored[:]), text(sign("Server Key")))
}
