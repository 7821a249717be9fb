package pwsh

import "strings"

// IsSecretHive reports whether a registry key, in lower case, contains credentials.
func IsSecretHive(key string) bool {
	key = strings.ReplaceAll(key, "/", `\`)
	for _, hive := range [...]string{`\sam`, `\security`, `hklm\system`, `\lsa`, `winlogon`, `putty`, `\tightvnc`, `\realvnc`, `\winvnc`, `credential`, `password`} {
		if strings.HasSuffix(key, hive) || strings.Contains(key, hive) && hive != `\sam` && hive != `hklm\system` && hive != `\security` {
			return true
		}
	}
	return false
}
