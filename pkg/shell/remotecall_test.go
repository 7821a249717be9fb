package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestRequestBodies holds that what a request sends counts, by whatever it is sent, and that
// requests to this machine and bodies that take nothing away do not.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	const gone = `{"query":"mutation { volumeDelete(id: \"x\") }"}`
	for text, want := range map[string]bool{
		`curl -X POST https://api.test/graphql -d '` + gone + `'`:                                                      true,
		`curl https://api.test/graphql --json '` + gone + `'`:                                                          true,
		`curl https://api.test/graphql --data-raw '` + gone + `'`:                                                      true,
		`wget -qO- --post-data '` + gone + `' https://api.test/graphql`:                                                true,
		`http POST https://api.test/graphql query='mutation { volumeDelete(id: "x") }'`:                                true,
		`http https://api.test/droplets/1 type=rebuild`:                                                                true,
		`curl -X PATCH https://api.test/pages/1 -d '{"archived":true}'`:                                                true,
		`node -e "fetch('https://api.test/g',{method:'POST',body:JSON.stringify({query:'mutation{volumeDelete}'})})"`:  true,
		`python3 -c "import requests; requests.post('https://api.test/g',json={'query':'mutation{ serviceDelete }'})"`: true,
		`curl -X POST http://localhost:4000/graphql -d '` + gone + `'`:                                                 false,
		`curl -X POST https://api.test/graphql -d '{"query":"{ viewer { id } }"}'`:                                     false,
		`curl -X POST https://api.test/items -d '{"name":"delete"}'`:                                                   false,
		`http POST https://api.test/items name=delete`:                                                                 false,
	} {
		got := slices.ContainsFunc(Analyze(text, here()).Effects, func(e effect.Effect) bool { return e.DestroysRemoteResource() })
		if got != want {
			t.Errorf("%s: destroys something elsewhere: %t", text, got)
		}
	}
}
