package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/yamlfile"
)

// serverNamePattern matches the name of a server, which becomes a part of a URL and of action types.
var serverNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// decodeServer decodes one MCP server.
func decodeServer(n ast.Node) (s MCPServer, err error) {
	err = yamlfile.VisitMappingFields(n, []string{"name", "command", "url", "token_file", "contain"}, func(f yamlfile.Field) (err error) {
		switch f.Key {
		case "name":
			s.Name, err = decodeText(f.Value)
		case "command":
			s.Command, err = yamlfile.ConvertElements(f.Value, decodeText)
		case "url":
			s.URL, err = decodeText(f.Value)
		case "token_file":
			s.TokenFile, err = decodeText(f.Value)
		case "contain":
			s.Contain, err = decodeServerContainment(f.Value)
		}
		return err
	})
	return s, err
}

// decodeServerContainment decodes what a contained server can reach.
func decodeServerContainment(n ast.Node) (*ServerContainment, error) {
	c := new(ServerContainment)
	return c, yamlfile.VisitMappingFields(n, []string{"read", "write", "network", "require"}, func(f yamlfile.Field) (err error) {
		switch f.Key {
		case "read":
			c.ReadablePaths, err = yamlfile.ConvertElements(f.Value, decodeText)
		case "write":
			c.WritablePaths, err = yamlfile.ConvertElements(f.Value, decodeText)
		case "network":
			c.NetworkAccess, err = decodeText(f.Value)
		case "require":
			b, ok := f.Value.(*ast.BoolNode)
			if !ok {
				return errors.New("expected true or false")
			}
			c.MustBeContained = b.Value
		}
		return err
	})
}

// mcpServerPathPointers returns the token files of servers, and the paths that contained servers can reach.
func mcpServerPathPointers(s *Settings) (out []*string) {
	for i := range s.MCP.Servers {
		out = append(out, &s.MCP.Servers[i].TokenFile)
		if c := s.MCP.Servers[i].Contain; c != nil {
			out = append(append(out, elementPointers(c.ReadablePaths)...), elementPointers(c.WritablePaths)...)
		}
	}
	return out
}

// findFaults returns the invalid settings of the servers and of the listener.
func (m *MCP) findFaults() (out []settingFault) {
	add := func(setting, format string, args ...any) {
		out = append(out, settingFault{setting, fmt.Sprintf(format, args...)})
	}
	seen := map[string]bool{}
	for _, s := range m.Servers {
		switch {
		case !serverNamePattern().MatchString(s.Name):
			add("mcp.servers", "%s is not a valid server name; use letters, digits, - and _", yamlfile.QuoteForMessage(s.Name))
		case seen[s.Name]:
			add("mcp.servers", "%s is listed twice; remove one", s.Name)
		case (len(s.Command) == 0) == (s.URL == ""):
			add("mcp.servers", "%s needs either command or url; add one", s.Name)
		case s.URL == "" && s.TokenFile != "":
			add("mcp.servers", "%s has both token_file and command; remove token_file, which is only for a url", s.Name)
		case s.URL != "" && s.Contain != nil:
			add("mcp.servers", "%s has both contain and url; remove contain, which is only for a command", s.Name)
		case s.Contain != nil && s.Contain.NetworkAccess != "" && s.Contain.NetworkAccess != "none" && s.Contain.NetworkAccess != "open":
			add("mcp.servers", "contain.network of %s must be open or none", s.Name)
		case s.URL != "":
			if why := serverURLFault(s.URL); why != "" {
				add("mcp.servers", "the url of %s is not valid: %s", s.Name, why)
			}
		}
		seen[s.Name] = true
	}
	if (m.TLSCert == "") != (m.TLSKey == "") {
		add("mcp.tls_cert", "and mcp.tls_key need each other; set both or neither")
	}
	if m.Listen == "" {
		return out
	}
	at, err := netip.ParseAddrPort(m.Listen)
	switch {
	case err != nil:
		add("mcp.listen", "must be an IP address and a port, such as 127.0.0.1:8700")
	case !at.Addr().IsLoopback() && (m.TLSCert == "" || m.TokenFile == ""):
		add("mcp.listen", "is not a loopback address; set mcp.tls_cert, mcp.tls_key and mcp.token_file, or listen on 127.0.0.1")
	}
	return out
}

// serverURLFault returns why a URL cannot be that of a server; "" if it can.
func serverURLFault(serverURL string) string {
	u, err := url.Parse(serverURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "a URL must begin with https://"
	}
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case u.User != nil:
		return "it contains a user name; remove the user name, and write the token to a token_file"
	case u.Fragment != "":
		return "it contains a fragment; remove the part from # on"
	case u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()):
		return "it begins with http://, which is allowed on this machine only; use https://"
	}
	return ""
}
