package sqltext

import (
	"slices"
	"testing"
)

func TestDestroys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"drop table users":                                       {"drop", "users"},
		"DROP TABLE IF EXISTS Users;":                            {"drop", "users"},
		"/* a */ drop -- b\n table \"users\"":                    {"drop", "users"},
		"truncate users":                                         {"truncate", "users"},
		"truncate table users":                                   {"truncate", "users"},
		"delete from users":                                      {"delete", "users"},
		"delete from users where 1=1":                            {"delete", "users"},
		"delete from users where true;":                          {"delete", "users"},
		"select ';'; drop schema app":                            {"drop", "app"},
		"DROP /*;*/ TABLE users":                                 {"drop", "users"},
		"DELETE /* ; */ FROM users":                              {"delete", "users"},
		"/* it's; */ drop table users":                           {"drop", "users"},
		"drop -- ;\n table users":                                {"drop", "users"},
		"select 1 /* never closed; drop table users":             {"drop", "users"},
		"select /*!1; */ 2; drop table users":                    {"drop", "users"},
		"/*/; */ drop table users":                               {"drop", "users"},
		"select 1 /* a; drop table users */":                     nil,
		"DROP TABLE tmp_cache, customers":                        {"drop", "tmp_cache", "customers"},
		`DROP TABLE IF EXISTS "customers", tmp_cache;`:           {"drop", "customers", "tmp_cache"},
		`DROP TABLE "users" CASCADE`:                             {"drop", "users"},
		"drop table if exists tmp_cache restrict":                {"drop", "tmp_cache"},
		"drop table a /* , */ , /* b */ `C d` -- e\n, f cascade": {"drop", "a", "c d", "f"},
		`drop table public.users, "app" . "Users"`:               {"drop", "public.users", "app.users"},
		"drop table [users], dbo.[orders]":                       {"drop", "users", "dbo.orders"},
		"truncate only a, only b * , c restart identity cascade": {"truncate", "a", "b", "c"},
		"delete from a, b using a join b":                        {"delete", "a", "b"},
		"delete from only users as u":                            {"delete", "users"},
		"/*!50000 drop */ table users":                           {"drop", "users"},
		`drop table "tmp""_cache"`:                               {"drop"},
		"drop table tmp_cache, $1":                               {"drop", "tmp_cache", "$1"},
		"drop table tmp_cache, ?":                                {"drop"},
		"drop table tmp_cache,":                                  {"drop"},
		"drop database my-db--x":                                 {"drop", "my-db"},
		"drop table a:b":                                         {"drop"},
		"drop table caché":                                       {"drop", "caché"},
		`drop table "tmp_cache`:                                  {"drop"},
		"delete from users where id = 7":                         nil,
		"drop index users_name":                                  nil,
		"select 'drop table users'":                              nil,
		"insert into log values ('delete from x')":               nil,
		"": nil,
	} {
		verb, objects := FindDestructiveStatement(text)
		if got := append([]string{verb}, objects...); !slices.Equal(got, want) && (verb != "" || want != nil) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
