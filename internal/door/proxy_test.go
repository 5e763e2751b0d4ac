package door

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// proxied is a door with a proxy, and a client that uses it.
func proxied(t *testing.T, cfg ProxyConfig) (*bastion, *Proxy) {
	t.Helper()
	key := newKey(t)
	b := startBastion(t, key)
	p, err := open(t, config(t, b, key)).Proxy(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return b, p
}

// ask sends CONNECT and gives the answer, with the open connection on 200.
func ask(t *testing.T, p *Proxy, target, credentials string, early string) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target)
	if credentials != "" {
		u := &http.Request{Header: http.Header{}}
		u.SetBasicAuth(proxyUser, credentials)
		fmt.Fprintf(c, "Proxy-Authorization: %s\r\n", u.Header.Get("Authorization"))
	}
	fmt.Fprintf(c, "\r\n%s", early)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return res, c, r
}

func TestProxyWantsItsToken(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	b.targets["172.16.0.11:50000"] = echo(t)
	for _, credentials := range []string{"", "guess", p.token + "x"} {
		res, _, _ := ask(t, p, "172.16.0.11:50000", credentials, "")
		if res.StatusCode != http.StatusProxyAuthRequired || res.Header.Get("Proxy-Authenticate") == "" {
			t.Errorf("with %q: got %s, want 407 and a challenge", credentials, res.Status)
		}
	}
	if host := p.listener.Addr().(*net.TCPAddr).IP; !host.IsLoopback() {
		t.Errorf("the proxy listens on %s", host)
	}
}

func TestProxyTunnelsInside(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	b.targets["172.16.0.11:50000"] = echo(t)
	long := strings.Repeat("0123456789abcdef", 1<<16)
	// The first bytes are sent before the proxy has answered.
	res, c, r := ask(t, p, "172.16.0.11:50000", p.token, "early ")
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if _, err := io.WriteString(c, long); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "early "+long {
		t.Errorf("%d bytes came back (%v), want %d", len(got), err, len(long)+6)
	}
}

func TestProxyAnswersSayWhatFailed(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	b.targets["172.16.0.11:1"], b.targets["172.16.0.11:2"], b.targets["172.16.0.11:3"] = refuses, timesOut, forbidden
	for target, want := range map[string]int{
		"172.16.0.11:1": http.StatusBadGateway, "172.16.0.11:2": http.StatusGatewayTimeout, "172.16.0.11:3": http.StatusForbidden,
	} {
		res, _, r := ask(t, p, target, p.token, "")
		body := make([]byte, 512)
		n, _ := r.Read(body)
		if res.StatusCode != want || !strings.Contains(string(body[:n]), target) {
			t.Errorf("%s: got %s %q, want %d and the address", target, res.Status, body[:n], want)
		}
	}
}

func TestProxyTakesTheNextThatServesAlike(t *testing.T) {
	up, down := netip.MustParseAddrPort("172.16.0.12:50000"), netip.MustParseAddrPort("172.16.0.11:50000")
	b, p := proxied(t, ProxyConfig{Spread: map[string][]netip.AddrPort{"172.16.0.5:50000": {down, up}}})
	b.targets[up.String()], b.targets[down.String()] = echo(t), refuses
	for range 4 {
		if res, _, _ := ask(t, p, "172.16.0.5:50000", p.token, ""); res.StatusCode != http.StatusOK {
			t.Error(res.Status)
		}
	}
	b.set(func(b *bastion) { b.targets[up.String()] = refuses })
	if res, _, _ := ask(t, p, "172.16.0.5:50000", p.token, ""); res.StatusCode != http.StatusBadGateway {
		t.Errorf("with nobody up: %s", res.Status)
	}
}

func TestProxyLeavesTheOutsideAsItWas(t *testing.T) {
	outside := echo(t)
	t.Run("directly", func(t *testing.T) {
		_, p := proxied(t, ProxyConfig{})
		res, _, _ := ask(t, p, outside, p.token, "")
		if res.StatusCode != http.StatusOK {
			t.Error(res.Status)
		}
	})
	t.Run("through the proxy of the environment", func(t *testing.T) {
		_, upstream := proxied(t, ProxyConfig{})
		asked := 0
		_, p := proxied(t, ProxyConfig{Upstream: func(r *http.Request) (*url.URL, error) {
			asked++
			if r.URL.String() != "https://"+outside {
				t.Errorf("asked about %s", r.URL)
			}
			return url.Parse(upstream.URL())
		}})
		res, c, r := ask(t, p, outside, p.token, "around the corner")
		if res.StatusCode != http.StatusOK || asked != 1 {
			t.Fatalf("%s after %d questions", res.Status, asked)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(r); err != nil || string(got) != "around the corner" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("which refuses", func(t *testing.T) {
		_, upstream := proxied(t, ProxyConfig{})
		_, p := proxied(t, ProxyConfig{Upstream: func(*http.Request) (*url.URL, error) {
			return url.Parse("http://nobody:wrong@" + upstream.listener.Addr().String())
		}})
		if res, _, _ := ask(t, p, outside, p.token, ""); res.StatusCode != http.StatusBadGateway {
			t.Error(res.Status)
		}
	})
}

// A name such as the API's may resolve to a private address.
func TestProxyLeadsNamesOfPrivateAddressesInside(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	b.targets["172.16.0.5:6443"] = echo(t)
	p.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "k8s.staging.example.org" {
			t.Errorf("looked up %s", host)
		}
		return []netip.Addr{netip.MustParseAddr("::ffff:172.16.0.5")}, nil
	}
	if res, _, _ := ask(t, p, "k8s.staging.example.org:6443", p.token, ""); res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
}

func TestProxyServesAnOrdinaryHTTPSClient(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // a watch: open until the client goes
	}))
	defer server.Close()
	b.targets["172.16.0.5:6443"] = server.Listener.Addr().String()
	proxyURL, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxyURL), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://172.16.0.5:6443/watch", nil)
	res, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil || line != "first\n" {
		t.Errorf("got %q, %v before the stream ended", line, err)
	}
}

func TestProxyOnlyTunnels(t *testing.T) {
	_, p := proxied(t, ProxyConfig{})
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.listener.Addr().String()+"/", nil)
	request.SetBasicAuth(proxyUser, p.token)
	request.Header.Set("Proxy-Authorization", request.Header.Get("Authorization"))
	res, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Error(res.Status)
	}
}

func TestClosedProxyLeavesNothingOpen(t *testing.T) {
	b, p := proxied(t, ProxyConfig{})
	b.targets["172.16.0.11:50000"] = parrot(t)
	_, _, r := ask(t, p, "172.16.0.11:50000", p.token, "x")
	if _, err := r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	if _, err := r.ReadByte(); err == nil {
		t.Error("a tunnel outlived the proxy")
	}
	if c, err := net.Dial("tcp", p.listener.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the proxy still listens")
	}
}

func TestNoProxyListsLoseWhatCoversTheNetwork(t *testing.T) {
	for list, want := range map[string]string{
		"":                                 "",
		"*":                                "",
		"localhost,127.0.0.1,.example.org": "localhost,127.0.0.1,.example.org",
		"10.0.0.0/8,172.16.0.0/12,192.168.0.0/16":    "10.0.0.0/8,192.168.0.0/16",
		"172.16.0.11, 172.16.0.11:50000 ,172.20.0.1": "172.20.0.1",
		"172.16.,172.16.*,172.17.,::1":               "172.17.,::1",
		"0.0.0.0/0,fd00::/8":                         "fd00::/8",
	} {
		if got := exceptionsOutside(list, privateNetwork); got != want {
			t.Errorf("%q became %q, want %q", list, got, want)
		}
	}
}
