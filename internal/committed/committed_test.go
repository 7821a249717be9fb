//go:build unix

package committed

import (
	"encoding/hex"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What lies there as it was committed can be given back, whatever way git stores it.
func TestKeeps(t *testing.T) {
	t.Parallel()
	f := committedFixture(t)
	f.write("src/empty/x", "")
	f.must(os.Remove(f.path("src/empty/x")))
	for name, want := range map[string]bool{
		"a.txt": true, "src": true, "src/b.txt": true, "src/sub": true,
		"b.txt": false, "src/x": false, ".git": false, ".git/HEAD": false, "src/empty": false,
	} {
		if name == "src" {
			want = false // it holds a folder that no commit has
		}
		if got := f.keeps(name); got != want {
			t.Errorf("Keeps(%s) = %v, want %v", name, got, want)
		}
	}
	f.must(os.Remove(f.path("src/empty")))
	if !f.keeps("src") {
		t.Error("a folder of committed files is not kept")
	}
	if r := New(disk{}, everywhere, everywhere); r.IsCommittedUnchanged(f.top) {
		t.Error("the folder that holds the history counts as kept")
	}
}

// Each case takes one thing away that a deleted file would have to be restored
// from, or makes the file another one.
func TestNotKept(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f fixture){
		"changed file":   func(f fixture) { f.write("a.txt", "more\n") },
		"same length":    func(f fixture) { f.write("a.txt", "two\n") },
		"line ends":      func(f fixture) { f.write("a.txt", "one\r\n") },
		"missing blob":   func(f fixture) { f.must(os.Remove(f.path(f.objectFile(nameOf("blob", "one\n"))))) },
		"missing commit": func(f fixture) { f.write(".git/refs/heads/main", strings.Repeat("ab", 20)+"\n") },
		"blob as commit": func(f fixture) {
			b := nameOf("blob", "one\n")
			f.write(".git/refs/heads/main", hex.EncodeToString(b[:])+"\n")
		},
		"another content":  func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob 4\x00two\n")) },
		"another kind":     func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("tree 4\x00one\n")) },
		"cut off":          func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob 4\x00one\n")[:8]) },
		"longer than said": func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob 4\x00one\nmore")) },
		"no number":        func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob x\x00one\n")) },
		"negative":         func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob -1\x00one\n")) },
		"empty object":     func(f fixture) { f.write(f.objectFile(nameOf("blob", "one\n")), "") },
		"no branch":        func(f fixture) { f.must(os.Remove(f.path(".git/refs/heads/main"))) },
		"branch that climbs": func(f fixture) {
			text, err := os.ReadFile(f.path(".git/refs/heads/main"))
			f.must(err)
			f.write("x", string(text))
			f.write(".git/HEAD", "ref: refs/heads/../../../x\n")
		},
		"reference of a reference": func(f fixture) {
			f.must(os.Rename(f.path(".git/refs/heads/main"), f.path(".git/refs/heads/b")))
			f.write(".git/refs/heads/main", "ref: refs/heads/b\n")
		},
		"history elsewhere": func(f fixture) { f.write(".git/commondir", "../other\n") },
		"history is a link": func(f fixture) {
			f.must(os.Rename(f.path(".git"), f.path("history")))
			f.must(os.Symlink("history", f.path(".git")))
		},
		"objects are a link": func(f fixture) {
			f.must(os.Rename(f.path(".git/objects"), f.path("objects")))
			f.must(os.Symlink("../objects", f.path(".git/objects")))
		},
		"file that names a history": func(f fixture) {
			f.must(os.Rename(f.path(".git"), f.path("history")))
			f.write(".git", "gitdir: history\n")
		},
		"file is a link to an equal one": func(f fixture) {
			f.must(os.Rename(f.path("a.txt"), f.path("b.txt")))
			f.must(os.Symlink("b.txt", f.path("a.txt")))
		},
		"file is a pipe": func(f fixture) {
			f.must(os.Remove(f.path("a.txt")))
			f.must(syscall.Mkfifo(f.path("a.txt"), 0o600))
		},
		"too large": func(f fixture) { f.commit(map[string]string{"a.txt": strings.Repeat("x", maxFileBytes+1)}) },
		"a submodule": func(f fixture) {
			f.commitTree(f.object("tree", treeText(item{"160000", "a.txt", nameOf("blob", "one\n")})))
		},
		"an unknown mode": func(f fixture) {
			f.commitTree(f.object("tree", treeText(item{"100000", "a.txt", nameOf("blob", "one\n")})))
		},
		"twice in the tree": func(f fixture) {
			one := item{"100644", "a.txt", nameOf("blob", "one\n")}
			f.commitTree(f.object("tree", treeText(one, one)))
		},
		"a tree that ends early": func(f fixture) {
			f.commitTree(f.object("tree", treeText(item{"100644", "a.txt", nameOf("blob", "one\n")})[:20]))
		},
		"other letters": func(f fixture) {
			f.commitTree(f.object("tree", treeText(item{"100644", "A.txt", nameOf("blob", "one\n")})))
		},
		"zlib bomb": func(f fixture) {
			f.write(f.objectFile(nameOf("blob", "one\n")), deflate("blob 4000000000\x00"+strings.Repeat("\x00", 1<<20)))
		},
		"endless head": func(f fixture) {
			f.write(f.objectFile(nameOf("blob", "one\n")), deflate(strings.Repeat("b", 1<<20)))
		},
		"sha256": func(f fixture) { f.write(".git/refs/heads/main", strings.Repeat("ab", 32)+"\n") },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := committedFixture(t)
			if !f.keeps("a.txt") {
				t.Fatal("the file is not kept before it is spoiled")
			}
			if spoil(f); f.keeps("a.txt") {
				t.Error("counts as kept")
			}
		})
	}
}

// A folder is kept only with all that is in it.
func TestFolders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(f fixture)
		want   bool
	}{
		"a file is gone already": {func(f fixture) { f.must(os.Remove(f.path("src/b.txt"))) }, true},
		"untracked":              {func(f fixture) { f.write("src/new.txt", "x") }, false},
		"ignored":                {func(f fixture) { f.write(".gitignore", "*.log\n"); f.write("src/sub/a.log", "x") }, false},
		"changed below":          {func(f fixture) { f.write("src/sub/c.txt", "x") }, false},
		"repository in it":       {func(f fixture) { f.write("src/.git/HEAD", "ref: refs/heads/main\n") }, false},
		"repository in the tree": {func(f fixture) {
			f.write("src/.git/HEAD", "x")
			f.commitTree(f.tree(map[string]string{"src/b.txt": "two\n", "src/sub/c.txt": "three\n", "src/.git/HEAD": "x"}))
		}, false},
		"file for a folder": {func(f fixture) {
			f.must(os.RemoveAll(f.path("src/sub")))
			f.write("src/sub", "three\n")
		}, false},
		"submodule": {func(f fixture) {
			f.write("src/mod/x", "x")
			f.commitTree(f.object("tree", treeText(item{"40000", "src", f.object("tree", treeText(
				item{"100644", "b.txt", nameOf("blob", "two\n")},
				item{"40000", "sub", f.tree(map[string]string{"c.txt": "three\n"})},
				item{"160000", "mod", nameOf("commit", "x")}))})))
		}, false},
		"link inside":      {func(f fixture) { f.link("src/l", "sub/c.txt") }, true},
		"link up, inside":  {func(f fixture) { f.link("src/sub/l", "../b.txt") }, true},
		"link out":         {func(f fixture) { f.link("src/l", "../../elsewhere") }, false},
		"link that climbs": {func(f fixture) { f.link("src/l", "sub/../../..") }, false},
		"absolute link":    {func(f fixture) { f.link("src/l", "/etc") }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := committedFixture(t)
			if tt.change(f); f.keeps("src") != tt.want {
				t.Errorf("Keeps(src) = %v, want %v", !tt.want, tt.want)
			}
		})
	}
}

// link makes a link and commits it with the other files.
func (f fixture) link(name, to string) {
	f.t.Helper()
	f.must(os.Symlink(to, f.path(name)))
	blob := f.object("blob", to)
	sub := []item{{"100644", "c.txt", nameOf("blob", "three\n")}}
	src := []item{{"100644", "b.txt", nameOf("blob", "two\n")}}
	if rest, ok := strings.CutPrefix(name, "src/sub/"); ok {
		sub = append(sub, item{"120000", rest, blob})
	} else {
		src = append(src, item{"120000", strings.TrimPrefix(name, "src/"), blob})
	}
	src = append(src, item{"40000", "sub", f.object("tree", treeText(sub...))})
	f.commitTree(f.object("tree", treeText(item{"40000", "src", f.object("tree", treeText(src...))})))
}

// A link by itself is kept if its text is.
func TestLink(t *testing.T) {
	t.Parallel()
	f := committedFixture(t)
	f.link("src/l", "/etc/passwd")
	if !f.keeps("src/l") {
		t.Error("a committed link is not kept")
	}
	f.must(os.Remove(f.path("src/l")))
	f.must(os.Symlink("/etc/shadow", f.path("src/l")))
	if f.keeps("src/l") {
		t.Error("another link counts as kept")
	}
}

// Deltas are read within bounds, and a pack that contradicts itself is an error.
func TestPacks(t *testing.T) {
	t.Parallel()
	const base, add = "zero\n", "one\n"
	whole := nameOf("blob", base+add)
	baseName := nameOf("blob", base)
	loop := nameOf("blob", "loop")
	var chain []packed
	name := baseName
	for text := base; len(chain) < maxDeltaChain+2; {
		next := text + "x"
		n := nameOf("blob", next)
		chain = append(chain, packed{name: n, kind: packObjectTypeRefDelta, before: slices.Clone(name[:]), text: delta(text, "x")})
		text, name = next, n
	}
	tests := map[string]struct {
		objects []packed
		file    string // content of the file
		want    bool
	}{
		"whole":             {[]packed{{name: whole, kind: 3, text: base + add}}, base + add, true},
		"by name":           {[]packed{{name: baseName, kind: 3, text: base}, {name: whole, kind: packObjectTypeRefDelta, before: baseName[:], text: delta(base, add)}}, base + add, true},
		"by offset":         {[]packed{{name: baseName, kind: 3, text: base}, {name: whole, kind: packObjectTypeOffsetDelta, before: []byte{byte(1 + len(deflate(base)))}, text: delta(base, add)}}, base + add, true},
		"another base":      {[]packed{{name: baseName, kind: 3, text: "nono\n"}, {name: whole, kind: packObjectTypeRefDelta, before: baseName[:], text: delta(base, add)}}, base + add, false},
		"no base":           {[]packed{{name: whole, kind: packObjectTypeRefDelta, before: loop[:], text: delta(base, add)}}, base + add, false},
		"of itself":         {[]packed{{name: whole, kind: packObjectTypeRefDelta, before: whole[:], text: delta(base, add)}}, base + add, false},
		"offset zero":       {[]packed{{name: whole, kind: packObjectTypeOffsetDelta, before: []byte{0}, text: delta(base, add)}}, base + add, false},
		"before the pack":   {[]packed{{name: whole, kind: packObjectTypeOffsetDelta, before: []byte{0xff, 0x7f}, text: delta(base, add)}}, base + add, false},
		"another kind":      {[]packed{{name: whole, kind: 2, text: base + add}}, base + add, false},
		"reserved kind":     {[]packed{{name: whole, kind: 5, text: base + add}}, base + add, false},
		"wrong content":     {[]packed{{name: whole, kind: 3, text: base + "two\n"}}, base + add, false},
		"says it is longer": {[]packed{{name: whole, kind: 3, text: base + add, size: 12}}, base + add, false},
		"bomb":              {[]packed{{name: whole, kind: 3, text: base + add, size: maxObjectBytes + 1}}, base + add, false},
		"delta bomb":        {[]packed{{name: baseName, kind: 3, text: base}, {name: whole, kind: packObjectTypeRefDelta, before: baseName[:], text: "\x05\xff\xff\xff\xff\x0f" + strings.Repeat("\xb0\x05\x00", 1000)}}, base + add, false},
		"copy beyond":       {[]packed{{name: baseName, kind: 3, text: base}, {name: whole, kind: packObjectTypeRefDelta, before: baseName[:], text: "\x05\x09\xb0\x09\x00"}}, base + add, false},
		"chain too long":    {append([]packed{{name: baseName, kind: 3, text: base}}, chain...), base + strings.Repeat("x", maxDeltaChain+2), false},
		"long chain":        {append([]packed{{name: baseName, kind: 3, text: base}}, chain...), base + strings.Repeat("x", maxDeltaChain), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := committedFixture(t)
			f.write("p.txt", tt.file)
			f.commitTree(f.object("tree", treeText(item{"100644", "p.txt", nameOf("blob", tt.file)})))
			f.pack(tt.objects...)
			if got := f.keeps("p.txt"); got != tt.want {
				t.Errorf("Keeps = %v, want %v", got, tt.want)
			}
		})
	}
}

// Every byte of a pack and its index may be wrong: nothing fails, and what is
// still kept has the right content.
func TestDamagedPack(t *testing.T) {
	t.Parallel()
	const base, add = "zero\n", "one\n"
	f := committedFixture(t)
	whole, baseName := nameOf("blob", base+add), nameOf("blob", base)
	f.write("p.txt", base+add)
	f.commitTree(f.object("tree", treeText(item{"100644", "p.txt", whole})))
	f.pack(packed{name: baseName, kind: 3, text: base}, packed{name: whole, kind: packObjectTypeRefDelta, before: baseName[:], text: delta(base, add)})
	if !f.keeps("p.txt") {
		t.Fatal("the pack is not read")
	}
	for _, file := range []string{".git/objects/pack/pack-1.pack", ".git/objects/pack/pack-1.idx"} {
		text, err := os.ReadFile(f.path(file))
		f.must(err)
		for i := range text {
			damaged := append([]byte(nil), text...)
			damaged[i] ^= 0xff
			f.write(file, string(damaged))
			f.keeps("p.txt")
		}
		for n := 0; n < len(text); n += 7 {
			f.write(file, string(text[:n]))
			if f.keeps("p.txt") && n < len(text)-40 {
				t.Errorf("%s: cut at %d of %d, the object counts as there", file, n, len(text))
			}
		}
		f.write(file, string(text))
	}
}

// A working tree beside the first one keeps its history in the repository that
// names it in turn.
func TestLinkedTree(t *testing.T) {
	t.Parallel()
	f := committedFixture(t)
	head, err := os.ReadFile(f.path(".git/refs/heads/main"))
	f.must(err)
	f.write("wt/.git", "gitdir: "+f.path(".git/worktrees/wt")+"\n")
	f.write("wt/a.txt", "one\n")
	f.write(".git/worktrees/wt/HEAD", string(head))
	f.write(".git/worktrees/wt/commondir", "../..\n")
	f.write(".git/worktrees/wt/gitdir", f.path("wt/.git")+"\n")
	if !f.keeps("wt/a.txt") {
		t.Error("a file of a linked working tree is not kept")
	}
	f.write("fake/.git", "gitdir: "+f.path(".git/worktrees/wt")+"\n")
	f.write("fake/a.txt", "one\n")
	if f.keeps("fake/a.txt") {
		t.Error("a file counts as kept by a repository that does not know its folder")
	}
	inside := func(p string) bool { return strings.HasPrefix(p, f.path("wt")) }
	if New(disk{}, inside, inside).IsCommittedUnchanged(f.path("wt/a.txt")) {
		t.Error("a history is read where none may be stored")
	}
	if !New(disk{}, inside, everywhere).IsCommittedUnchanged(f.path("wt/a.txt")) {
		t.Error("the history of a linked working tree is not read where it is stored")
	}
	if New(disk{}, inside, everywhere).IsCommittedUnchanged(f.path("a.txt")) {
		t.Error("a file outside the workspace counts as kept")
	}
}

func everywhere(string) bool { return true }

// Branches may be in one file, and the last commit may be no branch.
func TestReferences(t *testing.T) {
	t.Parallel()
	f := committedFixture(t)
	head, err := os.ReadFile(f.path(".git/refs/heads/main"))
	f.must(err)
	f.must(os.Remove(f.path(".git/refs/heads/main")))
	f.write(".git/packed-refs", "# pack-refs with: peeled\n"+strings.Repeat("0", 40)+" refs/heads/other\n"+strings.TrimSpace(string(head))+" refs/heads/main\n")
	if !f.keeps("a.txt") {
		t.Error("packed-refs is not read")
	}
	f.write(".git/packed-refs", "")
	f.write(".git/HEAD", string(head))
	if !f.keeps("a.txt") {
		t.Error("a detached HEAD is not read")
	}
}

// Readers stop at their bounds.
func TestBounds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	files := map[string]string{}
	for i := range maxPathsComparedWithCommit + 1 {
		files["src/"+strings.Repeat("x", 1+i%50)+hex.EncodeToString([]byte{byte(i >> 8), byte(i)})] = "x"
	}
	f.commit(files)
	if f.keeps("src") {
		t.Error("a folder of too many files counts as kept")
	}
	deep := map[string]string{strings.Repeat("d/", maxFolderDepth+2) + "a": "x"}
	f.commit(deep)
	if f.keeps("d") {
		t.Error("a folder that is too deep counts as kept")
	}
	big := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		big["big/"+name] = strings.Repeat(name, maxFileBytes)
	}
	f.commit(big)
	if f.keeps("big") {
		t.Error("more bytes than the bound are compared")
	}
}

// What git itself writes is read: loose, packed with deltas, and by reference.
func TestGitItself(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	f := fixture{t, workspace(t) + "/app"}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = f.top
		cmd.Env = []string{"HOME=" + f.top, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	var text strings.Builder
	for i := range 2000 {
		text.WriteString(strings.Repeat(string(rune('a'+i%26)), i%80) + "\n")
	}
	f.write("src/long.txt", text.String())
	run("init", "-q", "-b", "main")
	run("add", ".")
	run("commit", "-qm", "one")
	f.write("src/long.txt", text.String()+"more\n")
	f.write("src/other.txt", "and\n"+text.String())
	run("add", ".")
	run("commit", "-qm", "two")
	if !f.keeps("src") {
		t.Error("loose objects are not read")
	}
	run("gc", "-q")
	if !f.keeps("src") {
		t.Error("packs are not read")
	}
	f.write("src/long.txt", text.String())
	if f.keeps("src/long.txt") {
		t.Error("an older version counts as kept")
	}
	run("update-index", "--assume-unchanged", "src/long.txt")
	if f.keeps("src") {
		t.Error("the index is believed")
	}
}
