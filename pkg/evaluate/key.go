package evaluate

import (
	"errors"
	"fmt"

	"github.com/shieldcli/shield/internal/owner"
)

// maxAPIKeyBytes is the maximum length of an API key, or of a file with one, in bytes.
const maxAPIKeyBytes = 4 << 10

// key returns the API key that an endpoint names, or "" if it names none.
func (ep *Endpoint) key(s modelAPIProvider) (string, error) {
	if ep.APIKeyFile != "" && ep.APIKeyEnv != "" {
		return "", errors.New("api_key_env and api_key_file are both set; leave one out")
	}
	if ep.APIKeyFile != "" {
		key, err := readAPIKeyFile(ep.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("api_key_file: %w", err)
		}
		return key, nil
	}
	name := ep.APIKeyEnv
	if name == "" {
		name = s.keyEnv
	}
	if name == "" {
		return "", nil
	}
	var value string
	if ep.LookupEnv != nil {
		value, _ = ep.LookupEnv(name)
	}
	if value == "" {
		if ep.APIKeyEnv == "" && !s.needsKey {
			return "", nil
		}
		return "", fmt.Errorf("environment variable %s, which should hold the API key, is not set; set it or name another in evaluator.api_key_env", name)
	}
	if err := checkAPIKeyFormat(value); err != nil {
		return "", fmt.Errorf("environment variable %s: %w", name, err)
	}
	return value, nil
}

// readAPIKeyFile reads a file that holds an API key and nothing else.
func readAPIKeyFile(fileName string) (string, error) {
	key, err := owner.ReadSecret(fileName, maxAPIKeyBytes)
	if err != nil {
		return "", err
	}
	if err := checkAPIKeyFormat(key); err != nil {
		return "", fmt.Errorf("%s: %w", fileName, err)
	}
	return key, nil
}

// checkAPIKeyFormat returns an error for text that cannot be an API key. The error does not quote the text, which may
// be from another file.
func checkAPIKeyFormat(key string) error {
	if key == "" {
		return errors.New("the API key is empty; set the variable or the file that the settings name")
	}
	if len(key) > maxAPIKeyBytes {
		return fmt.Errorf("the API key is longer than %d bytes; check that the settings name the right file", maxAPIKeyBytes)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return errors.New("the API key contains a character that is not printable ASCII; check that the settings name the right file")
		}
	}
	return nil
}
