package launch

import (
	"path/filepath"
	"slices"
	"strings"
)

// dropped lists the variables that are taken out of a command's environment:
// those that make some program run or load something other than what it was
// told on its command line. Names are in capitals; "*" stands for any text.
//
// What says where tools are installed (PATH, JAVA_HOME, GOROOT) or whose
// settings count (HOME, XDG_CONFIG_HOME) does so too, but nothing works
// without it. What packages are installed from (PIP_INDEX_URL, GOPROXY) is not
// here either: an installation is judged as one of code from outside.
var dropped = []struct{ why, names string }{
	{"the dynamic linker loads these libraries, or others from these folders", "LD_* DYLD_* GLIBC_TUNABLES"},
	{"the C library loads converters, runs helpers, and reads formats from here", "GCONV_PATH GETCONF_DIR LOCPATH NLSPATH"},
	{"other libraries load their plug-ins from here", "OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SASL_PATH GTK_MODULES GTK3_MODULES GTK_PATH GIO_EXTRA_MODULES GIO_MODULE_DIR QT_PLUGIN_PATH QT_QPA_PLATFORM_PLUGIN_PATH GST_PLUGIN_*"},
	{"a bus address may name a program to start (unixexec:)", "DBUS_*_BUS_ADDRESS"},
	{"shells read these files at start", "BASH_ENV ENV ZDOTDIR"},
	{"shells take functions from these", "BASH_FUNC_* FPATH FISH_* BASH_LOADABLES_PATH"},
	{"shells run these between commands", "PROMPT_COMMAND PS0 PS1 PS2 PS4"},
	{"shells read the same words differently", "BASHOPTS SHELLOPTS IFS CDPATH GLOBIGNORE"},
	{"programs that need a shell start this one", "SHELL CONFIG_SHELL MAKESHELL COMSPEC PERL5SHELL RUBYSHELL NPM_CONFIG_*"},
	{"programs that show or edit text start these", "PAGER *_PAGER MANPAGER EDITOR *_EDITOR VISUAL FCEDIT HGEDITOR BROWSER *_BROWSER"},
	{"less and man run what stands in these", "LESS LESSOPEN LESSCLOSE LESSKEY* LESSEDIT SYSTEMD_LESS MANOPT"},
	{"programs that need a password start these", "*_ASKPASS"},
	{"programs that need a connection start these", "*_RSH RSH SVN_SSH HGRSH RSYNC_CONNECT_PROG"},
	{"git runs, or reads settings that make it run, what these name", "GIT_SSH GIT_SSH_* GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG* GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE GIT_ALLOW_PROTOCOL GIT_PROTOCOL_FROM_USER"},
	{"editors run these commands, or load from these folders, at start", "VIMINIT GVIMINIT EXINIT VIM VIMRUNTIME MYVIMRC NVIM_* EMACSLOADPATH"},
	{"tools read options or settings from here that name programs", "TAR_OPTIONS TAPE ZIPOPT ZIP UNZIP UNZIPOPT ZIPINFO RIPGREP_CONFIG_PATH GREP_OPTIONS BAT_CONFIG_PATH FZF_DEFAULT_* CURL_HOME WGETRC SYSTEM_WGETRC SCREENRC PSQLRC KUBECONFIG KUBECTL_EXTERNAL_DIFF HELM_PLUGINS AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE CLOUDSDK_CONFIG ANSIBLE_*"},
	{"make and its kin read more rules or options from here", "MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES SCONSFLAGS CONFIG_SITE CMAKE_TOOLCHAIN_FILE CMAKE_*_LAUNCHER"},
	{"builds start these as compilers and tools", "CC CXX CPP FC AR AS LD NM RANLIB STRIP CMAKE_*_COMPILER PKG_CONFIG *_WRAPPER RUSTC RUSTDOC CARGO_TARGET_*_RUNNER CARGO_TARGET_*_LINKER CARGO_BUILD_* CARGO_ALIAS_* GOTOOLDIR GOTOOLCHAIN GOCACHEPROG GOPACKAGESDRIVER GOAUTH"},
	{"compilers load plug-ins and start programs by these options", "CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CGO_*FLAGS* RUSTFLAGS CARGO_ENCODED_RUSTFLAGS RUSTDOCFLAGS GOFLAGS GOENV COMPILER_PATH GCC_EXEC_PREFIX"},
	{"python runs or imports these", "PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONUSERBASE PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS PYTHONEXECUTABLE"},
	{"perl runs or loads these", "PERL5LIB PERLLIB PERL5OPT PERL5DB PERL_MM_OPT PERL_MB_OPT"},
	{"ruby runs or loads these", "RUBYLIB RUBYOPT GEM_HOME GEM_PATH BUNDLE_* IRBRC PRYRC"},
	{"node loads these", "NODE_OPTIONS NODE_PATH"},
	{"Java loads these, or takes options for agents", "CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JDK_JAVAC_OPTIONS JAVA_OPTS MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME ANT_OPTS ANT_ARGS SBT_OPTS"},
	{".NET loads these", "DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS DOTNET_SHARED_STORE CORECLR_* COR_PROFILER* COR_ENABLE_PROFILING MSBUILD*"},
	{"other languages load or run these", "LUA_INIT* LUA_PATH* LUA_CPATH* PHPRC PHP_INI_SCAN_DIR R_PROFILE* R_ENVIRON* R_LIBS* JULIA_LOAD_PATH JULIA_DEPOT_PATH ERL_LIBS ERL_*FLAGS ELIXIR_ERL_OPTIONS CAML_LD_LIBRARY_PATH TCLLIBPATH GHC_PACKAGE_PATH GUILE_LOAD_PATH AWKPATH AWKLIBPATH PSMODULEPATH"},
	{"programs write what they do, or the keys of connections, to these files", "GIT_TRACE* MALLOC_TRACE SSLKEYLOGFILE BASH_XTRACEFD"},
}

// CleanEnv returns an environment without the dropped variables, and with no
// relative folder in PATH, where a program's name would find a file of the
// workspace. Variables that a person asked to keep stay as they are. gone names
// what was dropped, in order.
func CleanEnv(env, keep []string) (out, gone []string) {
	drop := droppedNames()
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		kept := slices.ContainsFunc(keep, func(k string) bool { return strings.EqualFold(k, name) })
		switch {
		case kept:
		case drop.has(name):
			gone = append(gone, name)
			continue
		case strings.EqualFold(name, "PATH"):
			entry = name + "=" + absoluteFolders(value)
		}
		out = append(out, entry)
	}
	slices.Sort(gone)
	return out, slices.Compact(gone)
}

// A nameList holds patterns of names by their first character, "*" included.
type nameList map[byte][]string

func droppedNames() nameList {
	list := nameList{}
	for _, d := range dropped {
		for pattern := range strings.FieldsSeq(d.names) {
			list[pattern[0]] = append(list[pattern[0]], pattern)
		}
	}
	return list
}

// has reports whether a name is in the list. Case does not count: npm and
// Windows look at none.
func (l nameList) has(name string) bool {
	if name == "" {
		return false
	}
	name = strings.ToUpper(name)
	matches := func(pattern string) bool { return matchName(pattern, name) }
	return slices.ContainsFunc(l[name[0]], matches) || slices.ContainsFunc(l['*'], matches)
}

// matchName reports whether a name matches a pattern with any number of "*".
func matchName(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return name == pattern
	}
	name, ok := strings.CutPrefix(name, head)
	for ok && rest != "" {
		var next string
		next, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, next)
		}
		_, name, ok = strings.Cut(name, next)
	}
	return ok
}

// absoluteFolders returns a search path without its relative and empty
// elements. It is never empty, which shells take for the current folder.
func absoluteFolders(list string) string {
	folders := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(folders) == 0 {
		return "/usr/bin:/bin"
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// variable returns the value of a variable in an environment; "" if it is not
// there.
func variable(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && (n == name || filepath.Separator == '\\' && strings.EqualFold(n, name)) {
			return value
		}
	}
	return ""
}
