package door

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// proxyUser is the user in the proxy's URL; the password is the token.
const proxyUser = "bastide"

// ProxyConfig says what the proxy does beyond the private network.
type ProxyConfig struct {
	// Spread maps a "host:port" that a program asks for to addresses that
	// serve it alike; the first that accepts is taken, each in turn first.
	//
	// talosctl needs it. gRPC, sent through a proxy, forgets which of several
	// endpoints it talks to and then checks the certificate against all of
	// them in one string, which fails. So a talosconfig for use behind the door
	// has one endpoint: the API load balancer's address, which is in every
	// control plane node's machine certificate, with port 50000, on which the
	// load balancer itself does not listen. The proxy leads it to any control
	// plane node that answers.
	Spread map[string][]netip.AddrPort
	// Upstream is the proxy that the user's environment asks for, for
	// addresses outside the private network; nil connects directly.
	Upstream func(*http.Request) (*url.URL, error)
}

// Proxy is an HTTP CONNECT proxy on 127.0.0.1 for this user's programs.
//
// HTTPS_PROXY catches every program in the child's environment, so what is
// outside the private network is passed on as if the proxy were not there:
// directly, or through the proxy that was set before. That grants nothing, since
// who may use the proxy could connect by itself. Other users of the machine are
// kept out with a token that is new for each proxy.
type Proxy struct {
	cfg      ProxyConfig
	inside   netip.Prefix
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	lookup   func(ctx context.Context, host string) ([]netip.Addr, error)
	token    string
	listener net.Listener
	server   *http.Server
	ctx      context.Context
	shut     context.CancelFunc
	wg       sync.WaitGroup

	mu   sync.Mutex
	turn int // which of several that serve alike comes first next time
}

// Proxy starts a proxy through the door. It ends with Close, with ctx, and with
// the door.
func (d *Door) Proxy(ctx context.Context, cfg ProxyConfig) (*Proxy, error) {
	p, err := newProxy(ctx, cfg, d.cfg.Network, d.DialContext)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(d.ctx, p.shut)
	context.AfterFunc(p.ctx, func() { stop() })
	return p, nil
}

func newProxy(ctx context.Context, cfg ProxyConfig, inside netip.Prefix,
	dial func(context.Context, string, string) (net.Conn, error)) (*Proxy, error) {
	token := make([]byte, 24)
	if _, err := rand.Read(token); err != nil {
		return nil, fmt.Errorf("making the proxy's token: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the local proxy: %w", err)
	}
	p := &Proxy{cfg: cfg, inside: inside, dial: dial, token: base64.RawURLEncoding.EncodeToString(token), listener: l,
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
		}}
	p.ctx, p.shut = context.WithCancel(ctx)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return p.ctx }}
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		_ = p.server.Serve(l)
	}()
	context.AfterFunc(p.ctx, func() { _ = p.server.Close() })
	return p, nil
}

// URL is what HTTPS_PROXY is set to. It holds the token: treat it as a secret.
func (p *Proxy) URL() string {
	u := url.URL{Scheme: "http", User: url.UserPassword(proxyUser, p.token), Host: p.listener.Addr().String()}
	return u.String()
}

// Close ends the proxy and everything that goes through it.
func (p *Proxy) Close() error {
	p.shut()
	err := p.server.Close() // which neither ends nor awaits tunnels
	p.mu.Lock()
	p.mu.Unlock() //nolint:staticcheck // whoever began before has been counted
	p.wg.Wait()
	return err
}

// begin counts a request in, unless the proxy is closing.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.wg.Add(1)
	return true
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		http.Error(w, "the door is closed", http.StatusServiceUnavailable)
		return
	}
	defer p.wg.Done()
	switch {
	case !p.authorised(r):
		w.Header().Set("Proxy-Authenticate", `Basic realm="bastide door"`)
		http.Error(w, "this proxy is for the program that bastide started", http.StatusProxyAuthRequired)
	case r.Method != http.MethodConnect:
		http.Error(w, "this proxy only tunnels: use CONNECT", http.StatusMethodNotAllowed)
	default:
		p.connect(w, r)
	}
}

func (p *Proxy) authorised(r *http.Request) bool {
	scheme, value, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	given, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	want := proxyUser + ":" + p.token
	return err == nil && subtle.ConstantTimeCompare(given, []byte(want)) == 1
}

func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	far, err := p.reach(r)
	if err != nil {
		http.Error(w, "bastide door: "+err.Error(), statusOf(err))
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The program may have sent on without waiting; those bytes are buffered.
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = far.Close()
		_ = near.Close()
		return
	}
	splice(p.ctx, near, buffered.Reader, far)
}

// statusOf is the proxy's answer to a failure, as other proxies give it.
func statusOf(err error) int {
	var failed *DialError
	var timeout net.Error
	switch {
	case errors.As(err, &failed) && (failed.Failure == Outside || failed.Failure == Prohibited):
		return http.StatusForbidden
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// splice copies both ways until both are done. Each direction that ends is
// passed on as a half-close. There is no idle limit: a watch may be silent.
func splice(ctx context.Context, near net.Conn, nearReader io.Reader, far net.Conn) {
	closeBoth := func() { _ = near.Close(); _ = far.Close() }
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	defer closeBoth()
	copyHalf := func(to net.Conn, from io.Reader) {
		_, err := io.Copy(to, from)
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			closeBoth() // broken, not ended: the other direction has no use either
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(near, far)
	}()
	copyHalf(far, nearReader)
	<-done
}
