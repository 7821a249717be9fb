package analysis

import "testing"

// TestPresigned holds that the signature of an address gives no key away, and that what stands
// beside it still counts.
func TestPresigned(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2024&X-Amz-Signature=fe5f80f7&token=abc": "token=abc",
		"sv=2022-11-02&sr=b&sig=abc%3D&se=2024&key=x":               "key=x",
		"AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=x&Expires=1": "",
		"key=AKIAIOSFODNN7EXAMPLE":                                  "key=AKIAIOSFODNN7EXAMPLE",
		"AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&secret=x":              "AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&secret=x",
		"": "",
	} {
		if got := withoutPresignedURLParams(query); got != want {
			t.Errorf("%s: %q is left, want %q", query, got, want)
		}
	}
}
