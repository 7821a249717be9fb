// Package service puts load on the real shield serve.
package service

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/servetest"
)

const (
	token    = "0123456789abcdef0123456789abcdef"
	settings = "policy: offline\nsession: {enabled: false}\nserve: {listen: %q, tls_cert: %q, tls_key: %q, tokens_file: %q}\n"
)

// A place is a running service and a way to ask it.
type place struct {
	address string
	client  *http.Client
	process *os.Process
}

// start starts shield serve on a free port of the loopback address.
func start(t *testing.T, args ...string) *place {
	t.Helper()
	cert, key, tokens, roots := servetest.WriteTLSAndTokenFiles(t, token, time.Now())
	dir := filepath.Dir(cert)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	text := fmt.Sprintf(settings, address, cert, key, tokens)
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Getenv("SHIELD_BIN"), append([]string{"serve", "--config", "s.yaml", "--state", filepath.Join(dir, "state")}, args...)...)
	c.Dir, c.Stderr = dir, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	p := &place{address, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 512}}, c.Process}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := p.client.Get("https://" + address + "/healthz"); err == nil {
			resp.Body.Close()
			return p
		}
		if time.Now().After(deadline) {
			t.Fatal("the service does not answer")
		}
	}
}

// ask sends actions and returns how many verdicts came.
func (p *place) ask(actions io.Reader) (verdicts int, err error) {
	req, err := http.NewRequest(http.MethodPost, "https://"+p.address+"/v1/actions", actions)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(`"decision":"`)) {
			verdicts++
		}
	}
	return verdicts, lines.Err()
}

// memory returns what of the service is resident, in MB, now and at most.
func (p *place) memory(t *testing.T) (now, most int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Pid))
	if err != nil {
		t.Skip("the system does not say what is resident")
	}
	for line := range strings.Lines(string(status)) {
		var n int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			now = n >> 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &n); err == nil {
			most = n >> 10
		}
	}
	return now, most
}

func sample(t *testing.T) [][]byte {
	t.Helper()
	if os.Getenv("SHIELD_BIN") == "" || os.Getenv("SHIELD_LOAD") == "" {
		t.Skip("make load puts load on the service")
	}
	data, err := os.ReadFile("../../testdata/sample/actions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
}

// TestStream has one client send many actions in one request: 20,000 that rules decide,
// or as many as SHIELD_ACTIONS says.
func TestStream(t *testing.T) {
	rows := sample(t)
	all := string(bytes.Join(rows, nil)) + "\n"
	times := 20
	if n, err := strconv.Atoi(os.Getenv("SHIELD_ACTIONS")); err == nil {
		times = max(n/len(rows), 1)
	}
	for _, tt := range []struct {
		name  string
		times int
		args  []string
	}{{"rules", times, []string{"--model", "none"}}, {"rules and model", 10, nil}} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, tt.args...)
			began := time.Now()
			parts := make([]io.Reader, tt.times)
			for i := range parts {
				parts[i] = strings.NewReader(all)
			}
			got, err := p.ask(io.MultiReader(parts...))
			if want := tt.times * len(rows); err != nil || got != want {
				t.Fatalf("%d verdicts of %d, %v", got, want, err)
			}
			now, most := p.memory(t)
			t.Logf("%d actions, %.0f a second, %d MB at the end, %d at most", got, float64(got)/time.Since(began).Seconds(), now, most)
		})
	}
}

// TestClients has many clients ask at once, one action a request, beside clients that
// say nothing, read nothing, or send too much. Each question gets its answer.
func TestClients(t *testing.T) {
	rows := sample(t)
	span, err := time.ParseDuration(os.Getenv("SHIELD_LOAD"))
	if err != nil {
		t.Fatal(err)
	}
	const clients, bad = 200, 20
	p := start(t, "--model", "none")
	end := time.Now().Add(span)
	var nuisance sync.WaitGroup
	stop := make(chan struct{})
	for i := range bad {
		nuisance.Go(func() { p.misbehave(i, rows, stop) })
	}
	var took [clients][]time.Duration
	var lost atomic.Int64
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			for n := i; time.Now().Before(end); n += clients {
				began := time.Now()
				got, err := p.ask(bytes.NewReader(rows[n%len(rows)]))
				if took[i] = append(took[i], time.Since(began)); err != nil || got != 1 {
					lost.Add(1)
					t.Errorf("%d verdicts, %v", got, err)
					return
				}
			}
		})
	}
	half, _ := func() (int, int) { time.Sleep(span / 2); return p.memory(t) }()
	work.Wait()
	close(stop)
	nuisance.Wait()
	now, most := p.memory(t)
	all := slices.Concat(took[:]...)
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("%d clients, %s: %d actions, %.0f a second, %d lost; median %v, p90 %v, p99 %v, most %v; %d MB half way, %d at the end, %d at most",
		clients, span, len(all), float64(len(all))/span.Seconds(), lost.Load(), at(.5), at(.9), at(.99), at(1), half, now, most)
}

// misbehave is a client that opens a connection and says nothing, sends actions and
// takes no verdict, or sends a line that never ends, until stop is closed.
func (p *place) misbehave(kind int, rows [][]byte, stop <-chan struct{}) {
	for {
		c, err := tls.Dial("tcp", p.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it tells the service nothing
		if err != nil {
			return
		}
		head := "POST /v1/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nTransfer-Encoding: chunked\r\n\r\n"
		body := bytes.Join(rows[:50], nil)
		switch kind % 3 {
		case 0:
		case 1:
			_, _ = io.WriteString(c, head)
			_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
			_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", len(body), body)
		case 2:
			_, _ = io.WriteString(c, head)
			_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
			for chunk := strings.Repeat("x", 1<<20); err == nil; {
				_, err = fmt.Fprintf(c, "%x\r\n%s\r\n", len(chunk), chunk)
			}
		}
		select {
		case <-stop:
			c.Close()
			return
		case <-time.After(5 * time.Second):
			c.Close()
		}
	}
}
