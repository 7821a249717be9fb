package telemetry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/shieldcli/shield/pkg/telemetry"
)

func ExampleExporter() {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			fmt.Println(r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
	}))
	defer collector.Close()
	e, err := telemetry.New(telemetry.Options{CollectorURL: collector.URL, ShieldVersion: "v0.1.0", Clock: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Observe(telemetry.Action{Type: "execute_command", Start: time.Now(), Latency: time.Millisecond, Decision: "BLOCK", Rule: "wipe_system"})
	ctx, stop := context.WithCancel(context.Background())
	stop()
	e.Run(ctx) // sends what is left when its context ends
	// Output:
	// POST /v1/traces application/x-protobuf
}
