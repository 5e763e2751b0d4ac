package api

import (
	"encoding/json"
	"encoding/pem"
)

// secretFields are what the JSON of a typed secret must have.
var secretFields = map[string][]string{
	"key_value":            nil,
	"basic_credentials":    {"username", "password"},
	"database_credentials": {"engine", "username", "password", "host", "dbname", "port"},
	"ssh_key":              {"ssh_private_key"},
}

// checkSecretData refuses a value that is not of its secret's type.
func checkSecretData(kind string, data []byte) error {
	if kind == "certificate" {
		if block, _ := pem.Decode(data); block == nil {
			return invalid("data", "format", "data is no PEM certificate")
		}
		return nil
	}
	fields, typed := secretFields[kind]
	if !typed {
		return nil
	}
	object := map[string]any{}
	if json.Unmarshal(data, &object) != nil {
		return invalid("data", "format", "data must be a JSON object")
	}
	for _, f := range fields {
		if _, text := object[f].(string); !text {
			return invalid("data", "format", "data must have the text "+f)
		}
	}
	return nil
}
