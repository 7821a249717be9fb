package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// git adds the effects of a tool that runs one subcommand of git: the program,
// with the payload's values as arguments, and the repository.
func (c *Case) git() {
	sub := strings.ReplaceAll(strings.TrimPrefix(c.Action.Type, "git_"), "_", "-")
	class := gitClass(sub)
	args := []string{sub}
	var fields []string
	for field := range c.Action.Payload {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	for _, field := range fields {
		switch v := c.Action.Payload[field].(type) {
		case bool:
			if v {
				args = append(args, "--"+field)
			}
		case string:
			if !isRepository(field) && len(args) < 64 {
				args = append(args, v)
			}
		}
	}
	c.Effects = append(c.Effects, effect.Effect{Kind: effect.Execute, Program: "git", Args: args, Class: class})
	c.repository(class, !historyOnly(sub))
	switch class {
	case effect.Network:
		if url := c.Action.Text("url"); url != "" {
			c.url(url)
		} else {
			c.Effects = append(c.Effects, effect.Effect{Kind: effect.HTTPRequest, Reason: "the repository's remote"})
		}
		if sub == "push" {
			c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemote, Program: "git"})
			c.pushed()
		}
	case effect.Unknown:
		c.dynamic(effect.CauseTool, "the git tool is unknown")
	}
	if line, more := c.gitLine(sub); more {
		c.run(line, &c.place, false)
	}
	if c.Action.Payload["command"] != nil {
		c.command()
	}
}

// pushed adds that commits go to the remote that a push names.
func (c *Case) pushed() {
	to := effect.Effect{Kind: effect.SendData, Program: "git", Target: c.Action.Text("remote")}
	if url := c.Action.Text("url"); url != "" {
		to.Target = ""
		if to.URL, to.Host = effect.URL(url); to.Host == "" {
			to.Target = url
		}
	}
	if to.Target != "" || to.Host != "" {
		c.Effects = append(c.Effects, to)
	}
}

// historyOnly reports whether a subcommand does not change the files of the
// working tree.
func historyOnly(sub string) bool {
	switch sub {
	case "add", "commit", "tag", "branch", "create-branch", "fetch", "push", "remote":
		return true
	}
	return false
}

// repository adds the reads and writes of the repository; tree includes all its
// files.
func (c *Case) repository(class effect.Class, tree bool) {
	kind := effect.ReadFile
	if class != effect.ReadOnly {
		kind = effect.WriteFile
	}
	found := false
	for _, field := range [...]string{"path", "repo", "repo_path", "repository", "directory", "destination"} {
		if text := c.Action.Text(field); text != "" {
			found = true
			c.path(kind, text, tree)
		}
	}
	if !found {
		c.path(kind, ".", tree)
	}
	for _, field := range [...]string{"file", "files", "paths"} {
		c.use(&use{field: field, kind: effect.ReadFile, optional: true})
	}
}

func isRepository(field string) bool {
	switch field {
	case "path", "repo", "repo_path", "repository", "directory":
		return true
	}
	return false
}

// gitClass returns how much a subcommand changes.
func gitClass(sub string) effect.Class {
	switch sub {
	case "status", "log", "diff", "diff-staged", "diff-unstaged", "show", "blame", "shortlog", "describe", "reflog", "ls-files", "rev-parse", "list-branches", "list-tags":
		return effect.ReadOnly
	case "add", "commit", "stash", "tag", "branch", "create-branch", "checkout", "switch", "restore", "init", "merge", "rebase", "cherry-pick", "revert", "mv", "apply", "config", "worktree", "set-working-dir", "remote":
		return effect.LocalWrite
	case "clone", "fetch", "pull", "push", "submodule":
		return effect.Network
	case "reset", "clean", "rm", "gc":
		return effect.Destructive
	}
	return effect.Unknown
}
