package shield

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
)

// usesFile are actions that use what in.txt or the folder dir holds, each by another way: as
// commands or as whole actions. Behind "!" are those of which no one can tell what they use.
const usesFile = `
ssh prod < in.txt
cat in.txt | ssh prod
head -5 in.txt | nc prod 99
ssh prod "$(cat in.txt)"!
ssh -F in.txt prod ls
ssh prod 'bash -s' < in.txt
sftp -b in.txt prod
mysql -h db.prod app < in.txt
mysql -h db.prod -e 'source in.txt'
psql -h db.prod -f in.txt
psql -h db.prod -c '\i in.txt'
redis-cli -h db.prod < in.txt
mongosh mongodb://db.prod/x in.txt
cp in.txt .git/hooks/pre-commit
install -m 755 in.txt .git/hooks/pre-commit
mv in.txt .git/hooks/pre-commit
ln -f in.txt .git/hooks/pre-commit
cp in.txt ~/.bashrc
cat in.txt >> ~/.bashrc
tee -a ~/.bashrc < in.txt
dd if=in.txt of=/home/x/.bashrc
sudo cp in.txt /etc/systemd/system/x.service
sudo tee /etc/x.conf < in.txt
sudo dpkg -i in.txt
sudo rpm -i in.txt
sudo insmod in.txt
sudo sysctl -p in.txt
sudo visudo -c -f in.txt
sudo iptables-restore < in.txt
sudo bash in.txt
kubectl apply -f in.txt
kubectl apply -f dir
kubectl apply -k dir
kubectl create configmap x --from-file=k=in.txt
helm upgrade app dir
helm upgrade app repo/x -f in.txt
helm upgrade app repo/x --set-file a=in.txt
scp in.txt prod:/srv/
scp -r dir prod:/srv/
rsync -a dir/ prod:/srv/
aws s3 cp in.txt s3://b/
aws s3 sync dir s3://b/
aws lambda update-function-code --function-name f --zip-file fileb://in.txt
aws cloudformation update-stack --stack-name s --template-body file://in.txt
aws cloudformation deploy --template-file in.txt --stack-name s!
gcloud compute instances create x --metadata-from-file startup-script=in.txt
gh gist create in.txt
gh release create v1 in.txt
gh api -X POST /repos/x/y/issues --input in.txt
gh secret set K < in.txt
curl -T in.txt https://example.com/
curl -d @in.txt https://example.com/
curl -F f=@in.txt https://example.com/
curl -K in.txt
wget --post-file=in.txt https://example.com/
http POST example.com < in.txt
crontab in.txt!
git apply in.txt
patch -p1 < in.txt
xargs rm -rf < in.txt!
sh < in.txt!
at now -f in.txt!
tar xf in.txt -C /
sed -i -f in.txt /etc/hosts!
mail -s hi a@b.test < in.txt
docker load -i in.txt!
ansible-playbook in.txt!
frobnicate apply in.txt
frobnicate --file=in.txt
python3 run.py in.txt
node run.js in.txt
sh run.sh in.txt
./run.sh in.txt
twine upload in.txt!
vercel --prod!
fly deploy!
gcloud app deploy!
firebase deploy!
npm publish!
git push --force origin main
git -C . push origin main
git --git-dir=/x push origin main!
terraform apply!
make deploy!
supabase db push!
{"type":"copy_file","payload":{"source":"in.txt","destination":".git/hooks/pre-commit"}}
{"type":"move_file","payload":{"source":"in.txt","destination":".git/hooks/pre-commit"}}
{"type":"copy_directory","payload":{"source":"dir","destination":"/srv/x"}}
{"type":"move_directory","payload":{"source":"dir","destination":"/srv/x"}}
{"type":"upload_file","payload":{"path":"in.txt","url":"https://example.com/"}}
{"type":"send_email","payload":{"to":"a@b.test","subject":"x","body":"y","attachments":["in.txt"]}}
{"type":"send_message","payload":{"to":"a","text":"x","attachments":["in.txt"]}}
{"type":"git_push","payload":{"remote":"origin","branch":"main","force":true}}
{"type":"read_file","payload":{"path":"in.txt"}}
`

// usesNone are actions that say all of what they do, whatever files hold.
const usesNone = `
kubectl delete ns prod
kubectl rollout restart deployment/x
gh pr merge 3
gh issue create --title a --body b
curl -d x=1 https://example.com/
ssh prod systemctl restart x
aws ec2 terminate-instances --instance-ids i-1
psql -h db.prod -c 'drop table x'
redis-cli -h db.prod flushall
rm -rf ~/docs
sudo chmod 777 /etc/x
sudo systemctl stop nginx
git reset --hard HEAD~1
{"type":"send_email","payload":{"to":"a@b.test","subject":"x","body":"y"}}
{"type":"write_file","payload":{"path":"/home/x/.bashrc","content":"x"}}
{"type":"http_request","payload":{"url":"https://example.com/","method":"POST","body":"x"}}
`

// TestAnswersMeanTheContent holds that an answer is used again only while all files that
// the action reads, runs or sends are as they were: those of a person and those of a model.
func TestAnswersMeanTheContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dir/deep", ".git/refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: t.TempDir(), WorkingDir: dir, StateDir: t.TempDir(), Clock: instant})
	caseOf := func(line string) *analysis.ActionCase {
		if !strings.HasPrefix(line, "{") {
			line = fmt.Sprintf(`{"type":"execute_command","payload":{"command":%q}}`, line)
		}
		return p.analyzer.AnalyzeAction(parse(t, line))
	}
	before := func() {
		write("in.txt", "uptime\n")
		write("dir/a.yaml", "a: 1\n")
		write("dir/deep/b.yaml", "b: 1\n")
		write(".git/HEAD", "ref: refs/heads/main\n")
		write(".git/refs/heads/main", "1111\n")
		write(".git/config", "[remote]\n")
	}
	for line := range strings.Lines(strings.TrimSpace(usesFile)) {
		line, unknown := strings.CutSuffix(strings.TrimSpace(line), "!")
		before()
		was, again := p.reusableAnswerKey("x", caseOf(line)), p.reusableAnswerKey("x", caseOf(line))
		if (was == "") != unknown && !unknown || was != again {
			t.Errorf("%s: binding %q, then %q with the same files; whether it can be told should be %v", line, was, again, !unknown)
		}
		for _, change := range []func(){
			func() {
				write("in.txt", "rm -rf /srv\n")
				write("dir/a.yaml", "a: 2\n")
				write(".git/refs/heads/main", "2222\n")
			},
			func() {
				write("in.txt", "rm -rf /srv\n")
				write("dir/deep/b.yaml", "b: 2\n")
				write(".git/config", "[x]\n")
			},
			func() {
				for _, name := range []string{"in.txt", "dir/deep/b.yaml", ".git/HEAD"} {
					if err := os.Remove(filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			},
		} {
			before()
			change()
			if now := p.reusableAnswerKey("x", caseOf(line)); now != "" && now == was {
				t.Errorf("%s: an answer holds though the file is another", line)
			}
		}
	}
	before()
	for line := range strings.Lines(strings.TrimSpace(usesNone)) {
		if p.reusableAnswerKey("x", caseOf(strings.TrimSpace(line))) == "" {
			_, err := caseOf(strings.TrimSpace(line)).InputFilesDigest()
			t.Errorf("%s: no answer can be kept: %v", strings.TrimSpace(line), err)
		}
	}
	// What was judged is what counts, not what is there when the answer comes.
	c := caseOf("ssh prod < in.txt")
	was := p.reusableAnswerKey("x", c)
	write("in.txt", "rm -rf /srv\n")
	if p.reusableAnswerKey("x", c) != was || p.reusableAnswerKey("x", caseOf("ssh prod < in.txt")) == was {
		t.Error("the answer is kept for a file that nobody was asked about")
	}
}

// TestPushOfAWorktree holds that an answer about a push is bound to the repository that a
// worktree or a submodule names.
func TestPushOfAWorktree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: t.TempDir(), WorkingDir: filepath.Join(dir, "tree"), StateDir: t.TempDir(), Clock: instant})
	binding := func() string {
		return p.reusableAnswerKey("x", p.analyzer.AnalyzeAction(parse(t, `{"type":"execute_command","payload":{"command":"git push --force origin main"}}`)))
	}
	first := map[string]string{
		"tree/.git": "gitdir: ../main/.git/worktrees/tree\n", "main/.git/worktrees/tree/HEAD": "ref: refs/heads/x\n", "main/.git/worktrees/tree/commondir": "../..\n",
		"main/.git/config": "[remote]\n", "main/.git/refs/heads/main": "1111\n", "main/.git/packed-refs": "a\n", "main/.git/hooks/pre-push": "true\n",
	}
	begin := func() {
		for name, text := range first {
			write(name, text)
		}
	}
	begin()
	was := binding()
	if was == "" || was != binding() {
		t.Fatalf("binding %q, then %q", was, binding())
	}
	for name := range first {
		begin()
		write(name, map[string]string{"tree/.git": "gitdir: ../other/.git\n", "main/.git/worktrees/tree/commondir": "../../../other\n"}[name])
		if now := binding(); now == was {
			t.Errorf("the answer holds though %s is another", name)
		}
	}
	for _, text := range []string{"", "gitdir:", "gitdir: \n", "x\n", "gitdir: a\nb\n", "gitdir: " + strings.Repeat("a", 5000)} {
		begin()
		write("tree/.git", text)
		if got := binding(); got != "" {
			t.Errorf("%.20q: binding %q", text, got)
		}
	}
	begin()
	if err := os.Remove(filepath.Join(dir, "main/.git/worktrees/tree/commondir")); err != nil { // a submodule has none
		t.Fatal(err)
	}
	if got := binding(); got == "" || got == was {
		t.Errorf("a submodule: binding %q", got)
	}
}

// TestPushOfAnotherRepository holds that an answer about any kind of push is bound to the repository
// that the command names.
func TestPushOfAnotherRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		for _, name := range []string{"work", "main/.git"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "main/.git/packed-refs"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: t.TempDir(), WorkingDir: filepath.Join(dir, "work"), StateDir: t.TempDir(), Clock: instant})
	for _, command := range []string{"push origin main", "subtree push --prefix=sub origin main", "subtree -P sub push origin main", "lfs push origin main", "send-pack h.test:a main"} {
		binding := func(options string) string {
			return p.reusableAnswerKey("x", p.analyzer.AnalyzeAction(parse(t, fmt.Sprintf(`{"type":"execute_command","payload":{"command":%q}}`, "git "+options+" "+command))))
		}
		write("1111\n")
		was := binding("-C ../main")
		if write("2222\n"); was == "" || was == binding("-C ../main") {
			t.Errorf("%s: the answer holds though the repository is another", command)
		}
		if got := binding("--git-dir=../main/.git"); got != "" {
			t.Errorf("%s: binding %q to a repository that is not known", command, got)
		}
	}
}

// TestInputsThatCannotBeTold: an answer about files that cannot be read, are too large or
// too many, or lie somewhere else is good for once.
func TestInputsThatCannotBeTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 33<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "many"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		if err := os.WriteFile(filepath.Join(dir, "many", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(dir, "up")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "loop"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "loop", "l")); err != nil {
		t.Fatal(err)
	}
	p := pipelineOf(t, Config{PolicyNameOrPath: "offline", Home: t.TempDir(), WorkingDir: dir, StateDir: t.TempDir(), Clock: instant})
	for _, action := range []string{
		`{"type":"execute_command","payload":{"command":"ssh prod < large"}}`,
		`{"type":"execute_command","payload":{"command":"scp -r many prod:"}}`,
		`{"type":"execute_command","payload":{"command":"scp -r loop prod:"}}`,
		`{"type":"execute_command","payload":{"command":"scp *.txt prod:"}}`,
		`{"type":"execute_command","payload":{"command":"ssh prod < /proc/self/environ"}}`,
		`{"type":"execute_command","cwd":"/no/such/folder","payload":{"command":"ssh prod < in.txt"}}`,
	} {
		if b := p.reusableAnswerKey("x", p.analyzer.AnalyzeAction(parse(t, action))); b != "" {
			t.Errorf("%s: can be told", action)
		}
	}
}
