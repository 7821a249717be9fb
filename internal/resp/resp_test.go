package resp

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answering returns a client of a server that reads once and answers this.
func answering(t *testing.T, answer string) *Client {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write([]byte(answer))
			if !strings.HasSuffix(answer, "\r\n") || answer == "$5\r\nab\r\n" {
				c.Close()
			}
		}
	}()
	return NewClient(Options{Network: "tcp", Address: l.Addr().String(), ConnectOrReplyTimeout: 2 * time.Second, Clock: time.Now})
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n": "OK", "-ERR no\r\n": ServerError("ERR no"), ":-42\r\n": int64(-42), "$-1\r\n": nil, "*-1\r\n": nil, "$0\r\n\r\n": "",
		"$4\r\na\r\nb\r\n": "a\r\nb", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n": []any{"a", []any{int64(1)}}, "*0\r\n": []any(nil),
	} {
		got, err := answering(t, text).Do(t.Context(), []string{"X"})
		if err != nil || !cmp.Equal(got, []any{want}) {
			t.Errorf("%q: %#v, %v", text, got, err)
		}
	}
}

// What is no answer, or claims to be longer than one may be, is an error, and takes neither memory nor stack.
func TestHostile(t *testing.T) {
	for _, text := range []string{
		"", "\n", "x\r\n", "+OK\n", "$1\r\nab\r\n", "$5\r\nab\r\n", "$-2\r\n", "$x\r\n", ":\r\n", ":99999999999999999999\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n",
		"*99999999999\r\n", strings.Repeat("*1\r\n", 1<<20), "+" + strings.Repeat("x", 1<<20) + "\r\n",
	} {
		if got, err := answering(t, text).Do(t.Context(), []string{"X"}); err == nil {
			t.Errorf("%.20q: %.40v", text, got)
		}
	}
}

// A server that does not answer, or drips, holds nobody longer than the timeout, nor than its context.
func TestSlow(t *testing.T) {
	c := answering(t, "*2\r\n:1\r\n")
	c.opts.ConnectOrReplyTimeout = 50 * time.Millisecond
	if _, err := c.Do(t.Context(), []string{"X"}); err == nil {
		t.Error("half an answer is one")
	}
	c.opts.ConnectOrReplyTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Do(ctx, []string{"X"}); err == nil {
		t.Error("canceled, and answered")
	}
	for range cap(c.connectionSlots) {
		c.connectionSlots <- struct{}{}
	}
	if _, err := c.Do(ctx, []string{"X"}); !errors.Is(err, context.Canceled) {
		t.Errorf("all connections in use: %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]Options{
		"redis://h":          {Network: "tcp", Address: "h:6379"},
		"redis://u@h:1/2":    {Network: "tcp", Address: "h:1", User: "u", DB: 2},
		"redis://[::1]/":     {Network: "tcp", Address: "[::1]:6379"},
		"unix:///run/s?db=1": {Network: "unix", Address: "/run/s", DB: 1},
	} {
		if got, err := ParseURL(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := ParseURL("rediss://h"); err != nil || got.TLS == nil || got.TLS.ServerName != "h" {
		t.Errorf("rediss: %+v, %v", got, err)
	}
	for _, text := range []string{"", "http://h", "redis://h/x", "redis://h/-1", "unix://", "redis://\x7f"} {
		if got, err := ParseURL(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// Each answer has its own time, so that one that is slow does not take the next one's.
func TestSteps(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const limit = 3 * time.Second
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1024))
		for range 4 {
			time.Sleep(limit / 3) // all take longer than one may
			_, _ = c.Write([]byte(":1\r\n"))
		}
	}()
	c := NewClient(Options{Network: "tcp", Address: l.Addr().String(), ConnectOrReplyTimeout: limit, Clock: time.Now})
	if got, err := c.Do(t.Context(), []string{"A"}, []string{"B"}, []string{"C"}, []string{"D"}); err != nil || len(got) != 4 {
		t.Errorf("%v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, []string{"E"}); err == nil {
		t.Error("its context has ended, and it waits on")
	}
}
