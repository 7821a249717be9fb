package cmd

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/telemetry"
)

// startTelemetry returns the function observe, which receives each verdict, and the function end,
// which sends the telemetry not yet sent when shield exits. observe is nil if the settings name no
// collector.
func startTelemetry(ctx context.Context, url string, w *Environment) (observe func(telemetry.Action), end func(), err error) {
	if url == "" {
		return nil, func() {}, nil
	}
	e, err := telemetry.New(telemetry.Options{
		CollectorURL: url, ShieldVersion: version(), Clock: w.Now,
		NotifyCollectorStatus: func(text string) { fmt.Fprintln(w.Err, "shield:", text) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("telemetry.otlp: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	return e.Observe, func() { stop(); <-done }, nil
}
