package classify

import "testing"

func TestOwnScript(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason string
		want   bool
	}{
		{"the script ./configure is not known", true},
		{"the script scripts/test.sh is not known", true},
		{"the script setup.py is not known", true},
		{"the script /work/app/gradlew is not known", true},
		{"the script /tmp/x.sh is not known", false},
		{"the script /dev/shm/x is not known", false},
		{"the script /var/tmp/x is not known", false},
		{"the script /home/me/.cache/x is not known", false},
		{"the script $X is not known", false},
		{"the script a.sh cannot be read", false},
		{"which program runs is not known: $X", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := ownScript(tt.reason); got != tt.want {
			t.Errorf("ownScript(%q) = %v, want %v", tt.reason, got, tt.want)
		}
	}
}
