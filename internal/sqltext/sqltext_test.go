package sqltext

import "testing"

func TestDestroys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"drop table users":                           {"drop", "users"},
		"DROP TABLE IF EXISTS Users;":                {"drop", "users"},
		"/* a */ drop -- b\n table \"users\"":        {"drop", ""},
		"truncate users":                             {"truncate", "users"},
		"truncate table users":                       {"truncate", "users"},
		"delete from users":                          {"delete", "users"},
		"delete from users where 1=1":                {"delete", "users"},
		"delete from users where true;":              {"delete", "users"},
		"select ';'; drop schema app":                {"drop", "app"},
		"DROP /*;*/ TABLE users":                     {"drop", "users"},
		"DELETE /* ; */ FROM users":                  {"delete", "users"},
		"/* it's; */ drop table users":               {"drop", "users"},
		"drop -- ;\n table users":                    {"drop", "users"},
		"select 1 /* never closed; drop table users": {"drop", "users"},
		"select /*!1; */ 2; drop table users":        {"drop", "users"},
		"/*/; */ drop table users":                   {"drop", "users"},
		"select 1 /* a; drop table users */":         {},
		"delete from users where id = 7":             {},
		"drop index users_name":                      {},
		"select 'drop table users'":                  {},
		"insert into log values ('delete from x')":   {},
		"": {},
	} {
		if verb, object := FindDestructiveStatement(text); [2]string{verb, object} != want {
			t.Errorf("%q: %q, %q; want %q", text, verb, object, want)
		}
	}
}
