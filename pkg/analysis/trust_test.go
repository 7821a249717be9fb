package analysis

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

func TestTrusted(t *testing.T) {
	t.Parallel()
	settings := TrustedDestinations{
		Hosts:      []string{"git.example.com", "*.corp.example.com", "10.0.0.0/8", "github.com/acme"},
		GitRemotes: []string{"origin"}, Recipients: []string{"*@example.com"}, RemoteResourceGlobs: []string{"*-dev"},
	}
	tests := []struct {
		e    effect.Effect
		want bool
	}{
		{effect.Effect{Kind: effect.SendData, Host: "git.example.com"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "evilgit.example.com"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "a.corp.example.com"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "10.1.2.3"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "11.1.2.3"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "127.0.0.1"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "localhost"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "localhost.evil.test"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "github.com", URL: "https://github.com/acme/app.git"}, true},
		{effect.Effect{Kind: effect.SendData, Host: "github.com", URL: "https://github.com/acmeevil/app"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "github.com", URL: "https://github.com/acme/../evil"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "github.com", URL: "https://github.com/acme%2f..%2fevil"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "github.com"}, false},
		{effect.Effect{Kind: effect.SendData, Host: "git.example.com", PathIsPattern: true}, false},
		{effect.Effect{Kind: effect.SendData, Program: "git", RemoteTargetName: "origin"}, true},
		{effect.Effect{Kind: effect.SendData, Program: "rclone", RemoteTargetName: "origin"}, false},
		{effect.Effect{Kind: effect.SendData, Program: "git", RemoteTargetName: "other"}, false},
		{effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "ann@example.com"}, true},
		{effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "ann@example.com.evil.test"}, false},
		{effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "eve@evil.test ann@example.com"}, false},
		{effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteTargetName: "shop-dev"}, true},
		{effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteTargetName: "shop"}, false},
		{effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "evil.test", RemoteTargetName: "shop-dev"}, false},
		{effect.Effect{Kind: effect.SendData}, false},
		{effect.Effect{Kind: effect.ReadFile, Host: "git.example.com"}, false},
	}
	trust, err := settings.compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		list := []effect.Effect{tt.e}
		trust.markTrustedDestinations(list, "")
		if list[0].IsTargetTrusted != tt.want {
			t.Errorf("%+v: trusted %v", tt.e, list[0].IsTargetTrusted)
		}
	}
	for _, host := range []string{"", "a b", "example.com:443", "ex ample.com/x"} {
		if _, err := (TrustedDestinations{Hosts: []string{host}}).compile(); err == nil {
			t.Errorf("the host %q is taken", host)
		}
	}
}

// A message with several recipients is trusted as far as each of them is.
func TestTrustedRecipients(t *testing.T) {
	t.Parallel()
	settings := TrustedDestinations{Recipients: []string{"*@example.com"}}
	trust, err := settings.compile()
	if err != nil {
		t.Fatal(err)
	}
	an := *testAnalyzer
	an.trustedDestinations = trust
	for _, to := range []any{
		"ann@example.com, eve@evil.test",
		"ann@example.com;eve@evil.test",
		[]any{"ann@example.com", "eve@evil.test"},
		[]any{"ann@example.com", obj{"email": "eve@evil.test"}},
		obj{"a": "eve@evil.test"},
	} {
		all := true
		for _, e := range an.AnalyzeAction(act("send_email", obj{"to": to, "body": "x", "attachments": []any{"report.csv"}})).Effects {
			if e.Kind == effect.SendData {
				all = all && e.IsTargetTrusted
			}
		}
		if all {
			t.Errorf("to %v: trusted", to)
		}
	}
}
