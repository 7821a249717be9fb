package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shield"
)

// settingOriginSuffix returns where a setting was set, as " (…)" for the end of a message.
func settingOriginSuffix(set *config.LoadedSettings, setting string) string {
	if where := set.SettingSourceFileAndLine(setting); where != "" {
		return " (" + where + ")"
	}
	return ""
}

// examineContainerDetection reports whether shield detected that it runs in a container, in which some
// presets allow more actions. If not, it reports the reason.
func examineContainerDetection(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	if _, err := detectContainer(set, w); err != nil {
		out.add(severityOK, "", "container: none detected, because %v%s. No action is needed: without a container, shield is stricter", err, settingOriginSuffix(set, "container"))
		return
	}
	out.add(severityOK, "", "container: detected, so the presets offline and permissive allow packages from the container's configured sources, and changes outside the container's home folders")
}

// examineWorkspace checks the roots: a change outside all of them is never harmless.
func examineWorkspace(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	if len(set.WorkspaceRoots) == 0 {
		if err := effect.CheckWorkspaceRoot(w.WorkingDir, w.Home); err != nil {
			out.add(severityNote, "start shield in a project's folder, or set roots", "workspace: none here, so every change is asked about: %v", err)
		} else {
			out.add(severityOK, "", "workspace: %s, where shield was started", w.WorkingDir)
		}
		return
	}
	for _, root := range set.WorkspaceRoots {
		info, err := os.Stat(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out.add(severityBad, fmt.Sprintf("run 'mkdir -p %s', or remove it from roots", root), "workspace: %s does not exist%s", root, settingOriginSuffix(set, "roots"))
		case err != nil:
			out.add(severityBad, "create the folder, or remove it from roots", "workspace: %v%s", err, settingOriginSuffix(set, "roots"))
		case !info.IsDir():
			out.add(severityBad, "name its folder in roots", "workspace: %s is not a folder%s", root, settingOriginSuffix(set, "roots"))
		default:
			out.add(severityOK, "", "workspace: %s", root)
		}
	}
}

// examineContainmentMechanisms reports which mechanisms --contain uses here.
func examineContainmentMechanisms(out *doctorFindings, set *config.LoadedSettings) {
	works := map[string]bool{}
	for _, m := range contain.ProbeKernelFeatures() {
		works[m.Name] = m.Works
		if m.Works {
			out.add(severityOK, "", "containment: %s%s", m.Name, cmp.Or(prependColonIfNotEmpty(m.ProbeDetail), " available"))
		} else if m.Name == "namespaces" {
			out.add(severityNote, "see docs/containment.md for what Landlock alone does not stop", "containment: %s are not available%s", m.Name, prependColonIfNotEmpty(m.ProbeDetail))
		} else {
			out.add(severityNote, "--contain starts programs uncontained here; use --contain=require to refuse instead", "containment: %s is not available%s", m.Name, prependColonIfNotEmpty(m.ProbeDetail))
		}
	}
	for i := range set.MCP.Servers {
		c := set.MCP.Servers[i].Contain
		if c == nil || works["namespaces"] {
			continue
		}
		name := set.MCP.Servers[i].Name
		switch alone := works["Landlock"] && works["seccomp"]; {
		case alone && c.MustBeContained:
			out.add(severityBad, "remove contain.require, or start the server on a machine with namespaces", "MCP server %s does not start: contain.require is set, and only Landlock is available", name)
		case alone:
			out.add(severityNote, "see docs/containment.md for what Landlock alone does not stop", "MCP server %s: contained by Landlock alone", name)
		case c.MustBeContained:
			out.add(severityBad, "remove contain.require, or start the server on a machine with Landlock", "MCP server %s does not start: contain.require is set, and containment is not available", name)
		default:
			out.add(severityWarning, "to refuse to start the server instead, set contain.require", "MCP server %s runs without containment, although contain is set: containment is not available", name)
		}
	}
}

func prependColonIfNotEmpty(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// examinePolicy checks the policy in use.
func examinePolicy(ctx context.Context, out *doctorFindings, set *config.LoadedSettings, cfg shield.Config) {
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		out.add(severityBad, "set roots to the folders of your projects"+settingOriginSuffix(set, "roots"), "workspace: %v", err)
		return
	}
	opts := shield.PolicyOptions(cfg, &an.DefaultExecutionContext)
	if set.PolicyBundle.URLOrPath != "" {
		examinePolicyBundle(out, set, cfg)
	} else {
		examinePolicySource(ctx, out, set, cfg, an, opts)
	}
	for _, l := range []struct{ name, file string }{{"team", set.PolicyLayers.TeamPolicyPath}, {"user", set.PolicyLayers.UserPolicyPath}, {"project", set.PolicyLayers.ProjectPolicyPath}} {
		if l.file == "" {
			continue
		}
		data, err := shield.ReadPolicyFile(l.file)
		if err == nil {
			_, err = policy.LoadLayer(l.name, l.file, data, opts)
		}
		if err != nil {
			out.add(severityBad, "correct it; until then every action is blocked"+settingOriginSuffix(set, "layers."+l.name), "policy: %s layer: %v", l.name, err)
		} else {
			out.add(severityOK, "", "policy: %s layer: %s", l.name, l.file)
		}
	}
}

// examinePolicyBundle checks the signed policy in use.
func examinePolicyBundle(out *doctorFindings, set *config.LoadedSettings, cfg shield.Config) {
	kept, err := shield.StoredBundleFromConfig(cfg)
	if err != nil {
		out.add(severityBad, "", "policy: %v", err)
		return
	}
	now := cfg.Clock()
	b, err := kept.Load(now)
	if err == nil {
		err = shield.CheckBundlePolicyLoads(cfg, b)
	}
	if err != nil {
		out.add(severityBad, "install a valid bundle; until then every action is blocked"+settingOriginSuffix(set, "policy.bundle"), "policy: %v", err)
		return
	}
	end := b.Expires.UTC().Format(time.RFC3339)
	if expired, _ := b.CheckExpiry(now, kept.ExpiryGracePeriod); expired {
		out.add(severityWarning, "run 'shield policy bundle update'; if that installs no newer bundle, ask its publisher for one",
			"policy: bundle %s expired on %s and is used until %s", b, end, b.Expires.Add(kept.ExpiryGracePeriod).UTC().Format(time.RFC3339))
		return
	}
	out.add(severityOK, "", "policy: bundle %s, signed by key %s, until %s", b, b.SigningKeyID, end)
}

// examinePolicySource checks the preset or policy file in use.
func examinePolicySource(ctx context.Context, out *doctorFindings, set *config.LoadedSettings, cfg shield.Config, an *analysis.Analyzer, opts policy.Options) {
	if set.PolicyNameOrPath == "auto" || slices.Contains(policy.PresetNames(), set.PolicyNameOrPath) {
		p, err := shield.LoadPolicy(cfg, opts)
		switch {
		case err != nil:
			out.add(severityBad, "choose another with --policy", "policy: %v", err)
		case set.PolicyNameOrPath == "auto":
			out.add(severityOK, "", "policy: auto, which is %s here", p.Name())
		default:
			out.add(severityOK, "", "policy: %s", p.Name())
		}
		return
	}
	data, err := shield.ReadPolicyFile(set.PolicyNameOrPath)
	if err != nil {
		out.add(severityBad, "correct it, or choose another policy"+settingOriginSuffix(set, "policy"), "policy: %v", err)
		return
	}
	if info, err := os.Stat(set.PolicyNameOrPath); err == nil {
		if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits); err != nil {
			out.add(severityWarning, "", "policy: %s: %v", set.PolicyNameOrPath, err)
		}
	}
	marks := map[policy.LintSeverity]findingSeverity{policy.Error: severityBad, policy.Warning: severityWarning}
	clean := true
	for _, f := range policy.LintPolicyFile(ctx, set.PolicyNameOrPath, data, an, opts) {
		if m, ok := marks[f.Severity]; ok {
			clean = false
			out.add(m, "", "policy: %s: %s", findingPosition(set.PolicyNameOrPath, f), f.Msg)
		}
	}
	if clean {
		out.add(severityOK, "", "policy: %s", set.PolicyNameOrPath)
	}
}
