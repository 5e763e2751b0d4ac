package door

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	outsideTimeout = 30 * time.Second // to connect to anything outside
	spreadTimeout  = 5 * time.Second  // for each of several that serve alike
	lookupTimeout  = 5 * time.Second  // to learn whether a name is inside
)

// reach connects to what a program asked for: through the door when it is in
// the private network, otherwise as if the proxy were not there.
func (p *Proxy) reach(r *http.Request) (net.Conn, error) {
	ctx, target := r.Context(), r.Host
	if alike, ok := p.cfg.Spread[target]; ok {
		return p.spread(ctx, alike)
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port", target)
	}
	if inside := p.insideAddress(ctx, host); inside.IsValid() {
		return p.dial(ctx, "tcp", net.JoinHostPort(inside.String(), port))
	}
	ctx, cancel := context.WithTimeout(ctx, outsideTimeout)
	defer cancel()
	upstream, err := p.upstream(target)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	if upstream == nil {
		return d.DialContext(ctx, "tcp", target)
	}
	return tunnel(ctx, upstream, target)
}

// insideAddress is the private address that a host is or resolves to. A name
// that cannot be resolved here is not ours: a proxy upstream may know it.
func (p *Proxy) insideAddress(ctx context.Context, host string) netip.Addr {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addrs, _ = p.lookup(ctx, host)
	}
	for _, a := range addrs {
		if a = a.Unmap(); p.inside.Contains(a) {
			return a
		}
	}
	return netip.Addr{}
}

// spread tries addresses that serve alike until one accepts, beginning with
// another one each time.
func (p *Proxy) spread(ctx context.Context, alike []netip.AddrPort) (net.Conn, error) {
	if len(alike) == 0 {
		return nil, errors.New("nothing serves this address")
	}
	p.mu.Lock()
	first := p.turn
	p.turn++
	p.mu.Unlock()
	var failures []error
	for i := range alike {
		one, cancel := context.WithTimeout(ctx, spreadTimeout)
		c, err := p.dial(one, "tcp", alike[(first+i)%len(alike)].String())
		cancel()
		if err == nil {
			return c, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

func (p *Proxy) upstream(target string) (*url.URL, error) {
	if p.cfg.Upstream == nil {
		return nil, nil
	}
	u, err := p.cfg.Upstream(&http.Request{URL: &url.URL{Scheme: "https", Host: target}})
	if err != nil {
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	return u, nil
}

// tunnel asks another HTTP proxy for a connection.
func tunnel(ctx context.Context, proxy *url.URL, target string) (net.Conn, error) {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	if port == "" || (proxy.Scheme != "http" && proxy.Scheme != "https") {
		return nil, fmt.Errorf("the proxy of the environment is of kind %q; only http and https are supported", proxy.Scheme)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if proxy.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: proxy.Hostname()})
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: target}, Host: target, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	answer := bufio.NewReader(c)
	err = request.Write(c)
	var response *http.Response
	if err == nil {
		response, err = http.ReadResponse(answer, request)
	}
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s to CONNECT %s", response.Status, target)
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	return &bufferedConn{Conn: c, reader: answer}, nil
}

// bufferedConn gives back what came with the proxy's answer.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

func (c *bufferedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
