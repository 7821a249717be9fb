package command

import "testing"

// TestSed, TestSQL and TestEx judge the small languages that are read here.
func TestSed(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{`s/a/b/g;s,/x/y,z,;p`, "readonly, out input"},
		{`/^a$/,/b/{s/[/]/x/;d}`, "readonly, out input"},
		{`10q;$!N;y/abc/xyz/`, "readonly, out input"},
		{`1i\` + "\ntext w x", "readonly, out input"},
		{`:a;s/x/y/;ta;b end;:end`, "readonly, out input"},
		{`w x`, "local-write, write_file x, out input"},
		{`s/a/b/gw x`, "local-write, write_file x, out input"},
		{`s/a/b/;w /dev/stdout`, "readonly, out input"},
		{`s|a\|b|w|e`, "local-write, not understood, in code, out input"},
		{`/x/e id`, "readonly, shell[id], out input"},
		{`#comment w x`, "readonly, out input"},
		{`s/a/b`, "readonly, not understood, out input"},
		{`k`, "readonly, not understood, out input"},
	} {
		if got := summary(Interpret([]Word{{Text: "sed"}, {Text: tt.script}})); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.script, got, tt.want)
		}
	}
}

func TestSQL(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"SELECT * FROM t WHERE a = 'drop table x; --'", "network"},
		{"-- drop table\nselect 1", "network"},
		{"/* drop */ select 1", "network"},
		{"/*!50000 drop */ table t", "destructive, destroy, change_remote delete"},
		{"explain delete from t", "destructive, destroy, change_remote delete"},
		{"with x as (delete from t returning *) select * from x", "destructive, destroy, change_remote delete"},
		{"DROP DATABASE x", "destructive, destroy, change_remote delete"},
		{"truncate t", "destructive, destroy, change_remote delete"},
		{"delete from t where id = 1", "network, change_remote"},
		{"update t set a = 1", "network, change_remote delete"},
		{"update t set a = 1 where true", "network, change_remote delete"},
		{"update t set a = 1 where id = 1", "network, change_remote"},
		{"delete from t where 1 = 1", "destructive, change_remote delete, destroy"},
		{"alter role u superuser", "network, change_remote grant"},
		{"create role u login", "network, change_remote grant"},
		{"alter system set archive_command = 'x'", "privileged, change_remote run, change_system"},
		{"do $$ begin execute 'drop table t'; end $$", "network, not understood, change_remote run"},
		{"select 1; drop table t", "destructive, destroy, change_remote delete"},
		{"alter table t drop column a", "destructive, change_remote delete, destroy"},
		{"create table t (a int)", "network, change_remote"},
		{"create extension x", "privileged, not understood, change_system"},
		{"grant all on t to u", "network, change_remote grant"},
		{"select lo_import('/etc/passwd')", "network, not understood, change_remote run"},
		{"do $$ begin end $$", "network, not understood"},
		{`\dt`, "network"},
		{`\! id`, "network, shell[id]"},
		{`\i x.sql`, "network, query:psql file[x.sql]"},
		{`\o |sh`, "network, shell[sh]"},
	} {
		if got := summary(Interpret([]Word{{Text: "psql"}, {Text: "-c"}, {Text: tt.text}})); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

func TestEx(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{":q!", "local-write"},
		{"wq | q", "local-write"},
		{":!id | x", "local-write, shell[id | x]"},
		{"%!sort", "local-write, shell[sort]"},
		{"r !id", "local-write, shell[id]"},
		{"w x", "local-write, write_file x"},
		{"e ~/.ssh/id", "local-write, read_file ~/.ssh/id"},
		{"py3 import os", "local-write, python[import os]"},
		{"so x.vim", "local-write, file[x.vim]"},
		{"set nu | call system('x')", "local-write, not understood"},
	} {
		if got := summary(Interpret([]Word{{Text: "vim"}, {Text: "-c"}, {Text: tt.text}})); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}
