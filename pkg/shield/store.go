package shield

import (
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/state"
)

// LoadSharedStoreConfig returns the store that a configuration shares with other machines, nil if
// it shares none.
func LoadSharedStoreConfig(cfg Config) (*state.SharedStoreServer, error) {
	s := cfg.effectiveSettings()
	if s.CrossMachineStateStoreURL == "" {
		return nil, nil
	}
	r := &state.SharedStoreServer{URL: s.CrossMachineStateStoreURL}
	text, err := owner.ReadSecret(s.StoreEncryptionKeyFile, 4<<10)
	if err != nil {
		return nil, fmt.Errorf("store_key_file: %w", err)
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != state.EncryptionMasterKeySize {
		return nil, fmt.Errorf("store_key_file: %s does not hold %d hexadecimal digits; make one with 'openssl rand -hex %d'", s.StoreEncryptionKeyFile, 2*state.EncryptionMasterKeySize, state.EncryptionMasterKeySize)
	}
	r.EncryptionMasterKey = [state.EncryptionMasterKeySize]byte(key)
	if r.Password, err = cfg.readSharedStorePassword(); err != nil {
		return nil, err
	}
	if s.StoreCAFile != "" {
		pem, _, err := owner.ReadRegularFile(s.StoreCAFile, 4<<20)
		if err != nil {
			return nil, fmt.Errorf("store_ca_file: %w", err)
		}
		r.CAs = x509.NewCertPool()
		if !r.CAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store_ca_file: %s contains no PEM certificate; name the file of the CA", s.StoreCAFile)
		}
	}
	return r, nil
}

func (cfg *Config) readSharedStorePassword() (string, error) {
	s := cfg.effectiveSettings()
	if s.StorePasswordFile != "" {
		password, err := owner.ReadSecret(s.StorePasswordFile, 4<<10)
		if err == nil && password == "" {
			err = errors.New("the file is empty; write the password into the file")
		}
		if err != nil {
			return "", fmt.Errorf("store_password_file: %w", err)
		}
		return password, nil
	}
	if s.StorePasswordEnv == "" {
		return "", nil
	}
	if cfg.LookupEnvironmentVariable != nil {
		if password, ok := cfg.LookupEnvironmentVariable(s.StorePasswordEnv); ok && password != "" {
			return password, nil
		}
	}
	return "", fmt.Errorf("store_password_env: environment variable %s, which should hold the password, is not set; set it where shield is started", s.StorePasswordEnv)
}
