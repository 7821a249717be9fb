package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/effect"
)

// pathSettings has an entry for each setting whose value can be a path: values returns pointers to the setting's
// values, and isPath reports whether a value is a path. Relative paths in a settings file start from the folder
// of the file, never from the working directory, because agents write there.
var pathSettings = map[string]struct {
	values func(*Settings) []*string
	isPath func(value string, src *Sources) bool
}{
	"policy": {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.PolicyNameOrPath }), func(v string, src *Sources) bool {
		return v != "auto" && !slices.Contains(src.PresetPolicyNames, v)
	}},
	"policy.bundle":  {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.PolicyBundle.URLOrPath }), func(v string, _ *Sources) bool { return !bundle.IsURL(v) }},
	"layers.team":    {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.PolicyLayers.TeamPolicyPath }), acceptEveryValueAsPath},
	"layers.user":    {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.PolicyLayers.UserPolicyPath }), acceptEveryValueAsPath},
	"layers.project": {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.PolicyLayers.ProjectPolicyPath }), acceptEveryValueAsPath},
	"roots":          {func(s *Settings) []*string { return elementPointers(s.WorkspaceRoots) }, acceptEveryValueAsPath},
	"state":          {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.StateDir }), acceptEveryValueAsPath},
	"classifier.model": {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Classifier.ModelNameOrDir }), func(v string, _ *Sources) bool {
		return v == "." || v == ".." || v == "~" || strings.ContainsAny(v, `/\`)
	}},
	"classifier.addr": {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Classifier.SidecarURLOrSocket }), func(v string, _ *Sources) bool {
		return strings.HasPrefix(v, socketPrefix) || strings.HasPrefix(v, "~") || strings.HasPrefix(v, ".")
	}},
	"classifier.onnxruntime":       {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Classifier.ONNXRuntimeLibraryPath }), acceptEveryValueAsPath},
	"evaluator.api_key_file":       {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Evaluator.APIKeyFile }), acceptEveryValueAsPath},
	"evaluator.ca_file":            {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Evaluator.CAFile }), acceptEveryValueAsPath},
	"mcp.tls_cert":                 {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.MCP.TLSCert }), acceptEveryValueAsPath},
	"mcp.tls_key":                  {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.MCP.TLSKey }), acceptEveryValueAsPath},
	"mcp.token_file":               {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.MCP.TokenFile }), acceptEveryValueAsPath},
	"mcp.servers":                  {mcpServerPathPointers, acceptEveryValueAsPath},
	"store_key_file":               {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.StoreEncryptionKeyFile }), acceptEveryValueAsPath},
	"store_password_file":          {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.StorePasswordFile }), acceptEveryValueAsPath},
	"store_ca_file":                {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.StoreCAFile }), acceptEveryValueAsPath},
	"serve.tls_cert":               {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Serve.TLSCert }), acceptEveryValueAsPath},
	"serve.tls_key":                {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Serve.TLSKey }), acceptEveryValueAsPath},
	"serve.tokens_file":            {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Serve.TokensFile }), acceptEveryValueAsPath},
	"audit.file":                   {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Audit.File }), acceptEveryValueAsPath},
	"approval.notify_file":         {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Approval.NotificationURLsFile }), acceptEveryValueAsPath},
	"approval.telegram.token_file": {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Approval.Telegram.TokenFile }), acceptEveryValueAsPath},
	"approval.slack.token_file":    {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Approval.Slack.TokenFile }), acceptEveryValueAsPath},
	"approval.discord.token_file":  {wrapGetterInOnePointerList(func(s *Settings) *string { return &s.Approval.Discord.TokenFile }), acceptEveryValueAsPath},
	"approval.command": {func(s *Settings) []*string {
		return elementPointers(s.Approval.CommandChannelArgv[:min(1, len(s.Approval.CommandChannelArgv))])
	}, func(v string, _ *Sources) bool {
		return v == "~" || strings.ContainsAny(v, `/\`) // a bare name is looked up in PATH
	}},
}

// socketPrefix begins the address of a Unix socket.
const socketPrefix = "unix:"

func acceptEveryValueAsPath(string, *Sources) bool { return true }

func wrapGetterInOnePointerList(settingPointerGetter func(*Settings) *string) func(*Settings) []*string {
	return func(s *Settings) []*string { return []*string{settingPointerGetter(s)} }
}

func elementPointers(list []string) []*string {
	out := make([]*string, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// resolvePaths makes the paths of a setting absolute, starting from a folder.
func (l *LoadedSettings) resolvePaths(src *Sources, name, dir string, errs *yamlfile.Errors) {
	if name == "approval.command" {
		l.ApprovalProgramWorkingDir = dir
	}
	p, ok := pathSettings[name]
	if !ok {
		return
	}
	var faults []settingFault
	for _, v := range p.values(&l.Settings) {
		if *v == "" && name != "roots" || !p.isPath(*v, src) {
			continue
		}
		if name == "policy" && !strings.ContainsAny(*v, `/\.~`) {
			// A mistyped preset must not be treated as the name of a file.
			faults = append(faults, settingFault{name, fmt.Sprintf("%s is not a preset (auto, %s); to name a file, write a path such as ./%s.yaml%s",
				yamlfile.QuoteForMessage(*v), strings.Join(src.PresetPolicyNames, ", "), *v, suggest.DidYouMeanSuffix(*v, append([]string{"auto"}, src.PresetPolicyNames...)))})
			continue
		}
		prefix := ""
		if name == "classifier.addr" {
			if rest, ok := strings.CutPrefix(*v, socketPrefix); ok {
				prefix, *v = socketPrefix, rest
			}
		}
		path, err := absolutePath(*v, dir, src.Home)
		if err == nil && name == "roots" {
			err = effect.CheckWorkspaceRoot(filepath.ToSlash(path), filepath.ToSlash(src.Home))
		}
		if err != nil {
			faults = append(faults, settingFault{name, err.Error()})
		}
		*v = prefix + path
	}
	l.resetInvalid(faults, errs)
}

// absolutePath returns a setting's path as an absolute path.
func absolutePath(path, dir, home string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty; write a path, or remove the setting")
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	case path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`):
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("%s: the home folder is unknown; write the absolute path", yamlfile.QuoteForMessage(path))
		}
		return filepath.Join(home, path[1:]), nil
	case path[0] == '~':
		return "", fmt.Errorf("%s: only ~/ is expanded, to your own home folder; write the absolute path", yamlfile.QuoteForMessage(path))
	case path[0] == '$' || path[0] == '%':
		return "", fmt.Errorf("%s: variables are not expanded here; write the absolute path, or begin it with ~/", yamlfile.QuoteForMessage(path))
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s: the base folder of this relative path is unknown; write the absolute path", yamlfile.QuoteForMessage(path))
	}
	return filepath.Join(dir, path), nil
}
