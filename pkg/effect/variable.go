package effect

import "strings"

// resolveLeadingVariable splits a word after a leading variable or "~" and returns the folder of the variable, "" if it is
// not known.
func (w *pathWalk) resolveLeadingVariable(word string) (base, rest string, ok bool) {
	switch word[0] {
	case '~':
		name, rest := word[1:], ""
		if i := strings.IndexAny(name, `/\`); i >= 0 && (name[i] == '/' || w.backslashSeparates) {
			name, rest = name[:i], name[i:]
		}
		for i := 0; i < len(name); i++ {
			if !isAlnumOrUnderscore(name[i]) && strings.IndexByte("+-.@\\", name[i]) < 0 || name[0] == '.' {
				return "", "", false // a file name such as "~x y"
			}
		}
		return w.homeOf(name), rest, true
	case '$', '%':
		name, rest, ok := variableName(word)
		if !ok {
			return "", "", false
		}
		if strings.EqualFold(name, "homedrive") && len(rest) >= len("%homepath%") && strings.EqualFold(rest[:len("%homepath%")], "%homepath%") {
			return w.homeFolder(), rest[len("%homepath%"):], true
		}
		base, known := w.variableFolder(name)
		if known && rest != "" && rest[0] != '/' && rest[0] != '\\' {
			return "", rest, true // text directly after the variable continues the folder's name
		}
		if !known && word[0] == '$' && name != strings.ToUpper(name) {
			return "", "", false // a file name such as $slug.tsx
		}
		return base, rest, true
	}
	return "", "", false
}

// variableName splits $NAME, ${NAME}, $env:NAME, ${env:NAME} or %NAME% from the start of a word.
func variableName(word string) (name, rest string, ok bool) {
	if word[0] == '%' {
		end := strings.IndexByte(word[1:], '%')
		if end < 1 || !isVariableName(word[1:1+end]) {
			return "", "", false
		}
		return word[1 : 1+end], word[end+2:], true
	}
	word = word[1:]
	if strings.HasPrefix(word, "{") {
		name, rest, ok = strings.Cut(word[1:], "}")
		name = trimPowerShellEnvPrefix(name)
		return name, rest, ok && isVariableName(name)
	}
	word = trimPowerShellEnvPrefix(word)
	n := 0
	for n < len(word) && isAlnumOrUnderscore(word[n]) {
		n++
	}
	return word[:n], word[n:], n > 1 && isVariableName(word[:n])
}

func trimPowerShellEnvPrefix(s string) string {
	if len(s) > 4 && strings.EqualFold(s[:4], "env:") {
		return s[4:]
	}
	return s
}

func isVariableName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isAlnumOrUnderscore(s[i]) && s[i] != '(' && s[i] != ')' {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9')
}

func isAlnumOrUnderscore(c byte) bool { return alnumOrUnderscoreBytes[c] }

var alnumOrUnderscoreBytes = func() (set [256]bool) {
	for c := range byte(128) {
		set[c] = c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return set
}()

// variableFolder returns the folder in a well-known variable.
func (w *pathWalk) variableFolder(name string) (folder string, known bool) {
	switch strings.ToLower(name) {
	case "home", "userprofile", "homepath", "zdotdir":
		return w.homeFolder(), true
	case "pwd":
		return w.pathContext.CWD, true
	case "xdg_config_home":
		return w.homeFolder() + "/.config", true
	case "xdg_data_home":
		return w.homeFolder() + "/.local/share", true
	case "xdg_state_home":
		return w.homeFolder() + "/.local/state", true
	case "xdg_cache_home":
		return w.homeFolder() + "/.cache", true
	case "appdata":
		return w.windowsHomeFolder() + "/appdata/roaming", true
	case "localappdata":
		return w.windowsHomeFolder() + "/appdata/local", true
	case "systemdrive", "homedrive":
		return "c:", true
	case "systemroot", "windir":
		return "c:/windows", true
	case "programfiles", "programw6432":
		return "c:/program files", true
	case "programfiles(x86)":
		return "c:/program files (x86)", true
	case "programdata", "allusersprofile":
		return "c:/programdata", true
	case "public":
		return "c:/users/public", true
	}
	return "", false
}

// homeFolder returns the home folder, as a pattern if it is unknown.
func (w *pathWalk) homeFolder() string {
	switch {
	case w.pathContext.Home != "":
		return w.pathContext.Home
	case w.contextHasWindowsPaths() || w.backslashSeparates:
		return "?:/users/*"
	}
	return "/home/*"
}

func (w *pathWalk) windowsHomeFolder() string {
	if h := w.pathContext.Home; len(h) > 2 && isDrive(h[:2]) {
		return h
	}
	return "?:/users/*"
}

// homeOf returns the home folder of a user, of the current user for "", or "" if it is unknown. "+" and "-"
// are the current and previous folders of the shell.
func (w *pathWalk) homeOf(user string) string {
	switch user {
	case "":
		return w.homeFolder()
	case "+":
		return w.pathContext.CWD
	case "root":
		return "/root"
	}
	if user[0] == '-' || user[0] == '+' || '0' <= user[0] && user[0] <= '9' {
		return ""
	}
	home := w.pathContext.Home
	if i := strings.LastIndexByte(home, '/'); i > 0 {
		if home[i+1:] == user || strings.HasPrefix(home, "/Users/") {
			return home[:i+1] + user
		}
	}
	return "/home/" + user
}

// isUsernameVariable reports whether a segment is a variable with the user's name, such as $USER.
func isUsernameVariable(name string) bool {
	if name[0] != '$' && name[0] != '%' {
		return false
	}
	v, rest, ok := variableName(name)
	if !ok || rest != "" {
		return false
	}
	switch strings.ToLower(v) {
	case "user", "username", "logname":
		return true
	}
	return false
}

// enterFolderNamedAfterUser enters the folder that has the user's name, which is the last name in the path of
// the home folder. If the home folder is unknown, the folder can have any name.
func (w *pathWalk) enterFolderNamedAfterUser() {
	home := w.pathContext.Home
	if i := strings.LastIndexByte(home, '/'); i >= 0 && i+1 < len(home) {
		w.appendSegment(home[i+1:], false)
		return
	}
	w.appendSegment("*", true)
}
