package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// urlScheme returns the scheme of a URL in lower case, or "".
func urlScheme(s string) string {
	i := strings.Index(s[:min(len(s), 40)], "://")
	if i <= 0 {
		return ""
	}
	return strings.ToLower(s[:i])
}

// addURL records a request to a URL; the default scheme is http.
func (r *argParser) addURL(w Word) {
	switch urlScheme(w.Text) {
	case "file":
		r.addOperandEffect(effect.ReadFile, skipBytes(w, len("file://")), false)
	default:
		r.addOperandEffect(effect.HTTPRequest, w, false)
	}
}

// addContactedProxyOrServer records a proxy, or a server that gets the requests in place of the URL's host: HOST, URL,
// HOST:PORT:ADDRESS, or HOST:PORT:HOST:PORT.
func (r *argParser) addContactedProxyOrServer(w Word) {
	address := w.Text
	if i := strings.LastIndex(address, "://"); i > 0 {
		address = address[i+len("://"):]
	} else if parts := strings.Split(address, ":"); len(parts) > 2 {
		address = parts[2]
	}
	w.Text = address
	r.addHost(w)
	r.result.ProxiesAndServersReplacingHosts = append(r.result.ProxiesAndServersReplacingHosts, w)
}

// addDownloadedFile records the file to which a download is saved if no name is given.
func (r *argParser) addDownloadedFile(w Word) {
	name := w.Text
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i]
	}
	if i := strings.Index(name, "://"); i >= 0 {
		name = name[i+3:]
	}
	i := strings.LastIndexByte(name, '/')
	if i < 0 || i == len(name)-1 || w.IsGlobPattern {
		r.addOperandEffect(effect.WriteFile, r.workingFolder(), true)
		return
	}
	w.Text = name[i+1:]
	r.addOperandEffect(effect.WriteFile, w, false)
}

// addHost records a connection to the host in a word. It removes the URL scheme, the path, the user
// and the port from the word.
func (r *argParser) addHost(w Word) {
	if urlScheme(w.Text) != "" {
		_, w.Text, _ = strings.Cut(w.Text, "://")
		w.Text, _, _ = strings.Cut(w.Text, "/")
	}
	if hasPrefix(w.Text, "//") { // a Windows share
		w.Text, _, _ = strings.Cut(w.Text[2:], "/")
	}
	if i := strings.LastIndexByte(w.Text, '@'); i >= 0 {
		w = skipBytes(w, i+1)
	}
	if strings.Count(w.Text, ":") == 1 {
		w.Text, _, _ = strings.Cut(w.Text, ":")
	}
	r.addOperandEffect(effect.Connect, w, false)
}

// addRequestData records files that an option's value names with @, < or file://, as in curl.
func (r *argParser) addRequestData(role argRole, w Word) {
	if role != argRoleTextOrFileReference && role != argRoleTextOrPath && r.requestMethod == "" {
		r.requestMethod = "POST"
	}
	switch role {
	case argRoleRequestFormField:
		_, v, ok := strings.Cut(w.Text, "=")
		if !ok {
			return
		}
		if v != "" && (v[0] == '@' || v[0] == '<') {
			v, _, _ = strings.Cut(v[1:], ";")
			r.addUpload(w, v)
		}
	case argRoleTextOrFileReference, argRoleTextOrPath:
		for _, prefix := range [...]string{"file://", "fileb://", "@"} {
			if hasPrefix(w.Text, prefix) && len(w.Text) > len(prefix) {
				r.addOperandEffect(effect.ReadFile, skipBytes(w, len(prefix)), false)
				if role == argRoleTextOrPath {
					r.addUnrecognizedWord(skipBytes(w, len(prefix)), true)
				}
				return
			}
		}
		r.addUnrecognizedWord(w, role == argRoleTextOrPath)
	default:
		if hasPrefix(w.Text, "@") {
			r.addUpload(w, w.Text[1:])
		} else if i := strings.Index(w.Text, "@"); i > 0 && !strings.ContainsAny(w.Text[:i], "=&{\" ") {
			// --data-urlencode name@file
			r.addSentFile(skipBytes(w, i+1), false)
		}
	}
}

// addUpload records that a file or standard input is sent.
func (r *argParser) addUpload(w Word, path string) {
	switch path {
	case "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		r.result.Stdin = StreamUpload
	default:
		w.Text = path
		r.addSentFile(w, false)
	}
}

// applyHTTPieOperand handles an operand of httpie: GET, a URL, name=value, name@file or name=@file.
func (r *argParser) applyHTTPieOperand(w Word) {
	sep := strings.IndexAny(w.Text, "=@")
	switch {
	case len(r.result.OperandEffects) == 0 && w.Text != "" && strings.Trim(w.Text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
		r.setRequestMethod(w.Text)
	case len(w.Text) > 1 && w.Text[0] == ':' && (w.Text[1] == '/' || w.Text[1] >= '0' && w.Text[1] <= '9'): // :8080/a means localhost
		w.Text = "localhost" + strings.TrimPrefix(w.Text, ":/")
		if i := len("localhost"); i < len(w.Text) && w.Text[i] >= '0' && w.Text[i] <= '9' {
			w.Text = "localhost:" + w.Text[i:]
		}
		r.addURL(w)
	case urlScheme(w.Text) != "", sep < 0 && strings.ContainsAny(w.Text, ".:/"), w.Text == "localhost":
		r.addURL(w)
	case sep >= 0:
		rest := skipBytes(w, sep+1)
		if w.Text[sep] == '=' && !hasPrefix(rest.Text, "=") && r.requestMethod == "" {
			r.requestMethod = "POST"
		}
		if w.Text[sep] == '@' {
			r.addSentFile(rest, false)
		} else if hasPrefix(rest.Text, "@") {
			r.addSentFile(skipBytes(rest, 1), false)
		}
	}
}

// addSocatAddress records what a socat address opens or runs.
func (r *argParser) addSocatAddress(w Word) {
	kind, rest, _ := strings.Cut(w.Text, ":")
	operand := w
	operand.Text, _, _ = strings.Cut(rest, ",")
	switch kind = strings.ToUpper(kind); {
	case kind == "-" || hasPrefix(kind, "STD") || kind == "FD" || hasPrefix(kind, "PTY") || hasPrefix(kind, "READLINE"):
	case kind == "EXEC" || kind == "SYSTEM" || kind == "SHELL":
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{operand}})
		r.addEffect(effect.RemoteShell)
	case strings.Contains(kind, "LISTEN") || strings.Contains(kind, "RECV"):
		r.addOperandEffect(effect.Listen, operand, false)
	case hasPrefix(kind, "TCP") || hasPrefix(kind, "UDP") || hasPrefix(kind, "OPENSSL") || hasPrefix(kind, "SSL") || hasPrefix(kind, "SCTP") || hasPrefix(kind, "SOCKS") || hasPrefix(kind, "PROXY"):
		r.addHost(operand)
	case kind == "FILE" || kind == "OPEN" || kind == "CREATE" || kind == "CREAT" || kind == "GOPEN" || kind == "PIPE" || hasPrefix(kind, "UNIX"):
		r.addSentFile(operand, false)
		r.addOperandEffect(effect.WriteFile, operand, false)
	default:
		r.setNotUnderstood("unknown socat address %s", w.Text)
	}
}

// addGitRemote records the target of a git remote. Names of configured remotes, and relative paths that do not begin with a
// dot, are not recorded.
func (r *argParser) addGitRemote(w Word) {
	if i := strings.Index(w.Text, "::"); i > 0 && !strings.ContainsAny(w.Text[:i], "/:@[") {
		// ext::COMMAND runs the command; other helpers are programs named git-remote-NAME.
		if w.Text[:i] == "ext" {
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{skipBytes(w, i+2)}})
		} else {
			r.setNotUnderstood("unknown remote helper in %s", w.Text)
		}
		r.addEffect(effect.UnknownEffect)
		return
	}
	if _, rest, ok := strings.Cut(w.Text, "://"); ok && hasPrefix(rest, "-") { // an option of ssh in place of a host
		r.addEffect(effect.UnknownEffect)
		return
	}
	if r.activeActionFlags&actionFlagImportsReposChartsManifests != 0 {
		r.addPlugin(w)
	}
	switch urlScheme(w.Text) {
	case "http", "https", "ftp", "ftps":
		r.addOperandEffect(effect.HTTPRequest, w, false)
	case "file":
		r.addOperandEffect(effect.ReadFile, skipBytes(w, len("file://")), true)
	case "":
		if host, _, ok := splitRemotePath(w); ok {
			r.addOperandEffect(effect.Connect, host, false)
		} else if strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, ".") || strings.HasPrefix(w.Text, "~") {
			r.addOperandEffect(effect.ReadFile, w, true)
		}
	default:
		r.addHost(w)
	}
}

// addCloneFolder records the folder into which a repository is cloned if none is named.
func (r *argParser) addCloneFolder(w Word) {
	if len(r.operandArgIndexes) > 1 {
		return
	}
	name := strings.TrimSuffix(strings.TrimRight(w.Text, "/"), "/.git")
	name = strings.TrimSuffix(strings.TrimSuffix(name[strings.LastIndexAny(name, "/:")+1:], ".git"), ".bundle")
	if lastElement(name) == "" || w.IsGlobPattern {
		r.addOperandEffect(effect.WriteFile, r.workingFolder(), true)
		return
	}
	w.Text = name
	r.addOperandEffect(effect.WriteFile, w, true)
}

// splitRemotePath splits [user@]host:path as scp, rsync and git do: the colon must come before any slash.
func splitRemotePath(w Word) (host, path Word, ok bool) {
	i := strings.IndexByte(w.Text, ':')
	if i <= 0 || strings.IndexByte(w.Text[:i], '/') >= 0 {
		return Word{}, w, false
	}
	host, path = w, skipBytes(w, i+1)
	host.Text = w.Text[:i]
	if at := strings.LastIndexByte(host.Text, '@'); at >= 0 {
		host.Text = host.Text[at+1:]
	}
	return host, path, true
}

// addRemotePath records a path that may be on another machine. That machine is contacted even if nothing is copied.
func (r *argParser) addRemotePath(w Word, written bool) {
	switch urlScheme(w.Text) {
	case "rsync", "scp", "sftp", "ssh":
		r.addHost(w)
	default:
		if host, _, ok := splitRemotePath(w); ok {
			r.addOperandEffect(effect.Connect, host, false)
			r.activeActionFlags |= actionFlagCancelsDryRun
			if written {
				r.setRemoteDestination()
			}
			return
		}
		if !written {
			r.addCopySource(w)
			if r.activeActionFlags&actionFlagRemovesSourceFiles != 0 {
				r.addOperandEffect(effect.MoveFile, w, r.activeActionFlags&actionFlagRecursive != 0)
			}
			return
		}
		r.addCopyWrites(w, true, false)
		if r.activeActionFlags&actionFlagDeletesExtraneousFiles != 0 {
			r.addOperandEffect(effect.DeleteFile, w, true)
		}
		return
	}
	r.activeActionFlags |= actionFlagCancelsDryRun
	if written {
		r.setRemoteDestination()
	}
}

// addCopySource records a file or folder that is sent if the destination is another machine.
func (r *argParser) addCopySource(w Word) {
	n := len(r.result.OperandEffects)
	r.addSentFile(w, r.activeActionFlags&actionFlagRecursive != 0)
	if len(r.result.OperandEffects) > n {
		r.copySourceEffectIndexes = append(r.copySourceEffectIndexes, n)
	}
}

// setRemoteDestination records that the destination is another machine.
func (r *argParser) setRemoteDestination() {
	r.addEffect(effect.ChangeRemoteSystem)
	r.activeActionFlags |= actionFlagDestinationIsRemote
}

// addCloudObject records a path in a cloud store, or a local path.
func (r *argParser) addCloudObject(w Word, written bool) {
	switch urlScheme(w.Text) {
	case "":
		if host, _, ok := splitRemotePath(w); ok && host.Text != "" {
			// remote:path of rclone, pod:path of kubectl
			if written {
				r.setRemoteDestination()
			}
			return
		}
		if written {
			r.addCopyWrites(w, r.activeActionFlags&actionFlagRecursive != 0, false)
		} else {
			r.addCopySource(w)
		}
	case "file":
		r.addCloudObject(skipBytes(w, len("file://")), written)
	default:
		// a bucket: s3://name/key
		r.addOperandEffect(effect.HTTPRequest, w, false)
		if r.activeActionFlags&actionFlagImportsReposChartsManifests != 0 {
			r.addPlugin(w)
		}
		if written {
			r.setRemoteDestination()
		}
	}
}

// isWellKnownKubernetesManifest reports whether a URL is a usual source of Kubernetes manifests.
func isWellKnownKubernetesManifest(w Word) bool {
	rest, ok := strings.CutPrefix(w.Text, "https://")
	if !ok || w.IsGlobPattern || strings.Contains(rest, "..") {
		return false
	}
	for i := range len(rest) + 1 {
		if (i == len(rest) || rest[i] == '/') && Manifests[rest[:i]] {
			return true
		}
	}
	return false
}

// isVolumeSourceHostPath reports whether the source of a volume is a path; a bare name is a volume of the container engine.
func isVolumeSourceHostPath(volumeSource string) bool {
	return volumeSource != "" && (strings.ContainsAny(volumeSource, "/~") || volumeSource[0] == '.')
}

// addVolume records the folder that docker -v HOST:CONTAINER[:OPTIONS] mounts. Docker also accepts -v=HOST:…
func (r *argParser) addVolume(w Word) {
	if hasPrefix(w.Text, "=") {
		w = skipBytes(w, 1)
	}
	src, rest, ok := strings.Cut(w.Text, ":")
	if !ok || !isVolumeSourceHostPath(src) && !w.IsGlobPattern {
		return
	}
	i := strings.LastIndexByte(rest, ':')
	onlyRead := i >= 0 && listContainsAny(rest[i+1:], "ro", "readonly")
	r.addMountedFolder(w, src, onlyRead)
}

// addMount records the folder that docker --mount type=bind,source=…,target=… mounts.
func (r *argParser) addMount(w Word) {
	var src string
	onlyRead := false
	bind := false
	for part := range strings.SplitSeq(w.Text, ",") {
		key, v, _ := strings.Cut(part, "=")
		switch key {
		case "source", "src":
			src = v
		case "type":
			bind = v == "bind"
		case "readonly", "ro":
			onlyRead = v != "false" && v != "0"
		}
	}
	if bind || isVolumeSourceHostPath(src) {
		r.addMountedFolder(w, src, onlyRead)
	}
}

func (r *argParser) addMountedFolder(w Word, src string, onlyRead bool) {
	w.Text = src
	r.addOperandEffect(effect.ReadFile, w, true)
	switch {
	case onlyRead:
	case src == "/":
		r.addOperandEffect(effect.WriteFile, w, true)
	default:
		r.addConditionalFileWrite(w, true)
	}
}

// addConditionalFileWrite records a file or folder that the command changes only under some condition: if
// a file system needs a repair, or if the program in a container writes to it.
func (r *argParser) addConditionalFileWrite(fileOrFolder Word, isRecursive bool) {
	r.addOperandEffect(effect.WriteFile, fileOrFolder, isRecursive)
	r.result.OperandEffects[len(r.result.OperandEffects)-1].IsFileContentNormallyUnchanged = true
}

func listContainsAny(list string, names ...string) bool {
	for part := range strings.SplitSeq(list, ",") {
		for _, n := range names {
			if part == n {
				return true
			}
		}
	}
	return false
}

// harmlessSSHOptions are the ssh settings that run no program.
const harmlessSSHOptions = " stricthostkeychecking userknownhostsfile connecttimeout serveraliveinterval serveralivecountmax batchmode port user hostname loglevel identitiesonly passwordauthentication pubkeyauthentication preferredauthentications connectionattempts compression tcpkeepalive checkhostip hostkeyalgorithms pubkeyacceptedkeytypes pubkeyacceptedalgorithms kexalgorithms ciphers macs addressfamily requesttty visualhostkey updatehostkeys globalknownhostsfile exitonforwardfailure controlmaster controlpath controlpersist proxyjump numberofpasswordprompts gssapiauthentication kbdinteractiveauthentication challengeresponseauthentication fingerprinthash hashknownhosts stdinnull ipqos rekeylimit escapechar verifyhostkeydns "

// applySSHOption records what ssh -o NAME=VALUE runs or reads.
func (r *argParser) applySSHOption(w Word) {
	i := strings.IndexAny(w.Text, "= ")
	if i < 0 || w.IsGlobPattern && strings.ContainsAny(w.Text[:i], "*?[{") {
		r.setNotUnderstood("unknown ssh option %s", w.Text)
		return
	}
	name := strings.ToLower(w.Text[:i])
	value := skipBytes(w, i+1)
	switch name {
	case "proxycommand", "localcommand", "knownhostscommand":
		if value.Text != "none" {
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{value}})
		}
	case "permitlocalcommand":
	case "remotecommand":
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{value}, Remote: true})
	case "identityfile", "certificatefile":
		r.addOperandEffect(effect.ReadFile, value, false)
	default:
		if name == "" || !strings.Contains(harmlessSSHOptions, " "+name+" ") {
			r.setNotUnderstood("unknown ssh option %s", w.Text)
		}
	}
}

// addImageRegistries records the registries of container images in a text: an image, NAME=IMAGE, or settings in JSON. An image
// without a registry comes from the default registry.
func (r *argParser) addImageRegistries(w Word) {
	for i, field := range strings.FieldsFunc(w.Text, func(c rune) bool { return strings.ContainsRune(" ,\"'[]{}", c) }) {
		if _, value, ok := strings.Cut(field, "="); ok {
			field = value
		} else if i > 0 {
			continue
		}
		field = strings.TrimLeft(strings.TrimPrefix(field, "oci:"), "/")
		host, _, ok := strings.Cut(field, "/")
		if ok && strings.ContainsAny(host, ".:") && !hasPrefix(host, ".") {
			r.addOperandEffect(effect.ChangeRemoteSystem, Word{Text: "oci://" + field, IsGlobPattern: w.IsGlobPattern, Span: w.Span}, false)
		}
	}
}
