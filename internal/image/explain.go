package image

import (
	"bastide/internal/image/format"
	"bastide/internal/outcome"
)

// Explain turns a refusal of a source into what a user reads, with exit code 3;
// any other error is returned as it is. what is such as "the image
// scaleway.raw.zst was not taken". If something was uploaded before, the caller
// wraps the result in outcome.Begun.
func Explain(what string, err error) error {
	r := format.Refused(err)
	if r == nil {
		return err
	}
	do := r.Do
	if do == "" {
		do = "take the Factory's scaleway image as it is"
	}
	return outcome.Refuse(what, r.Text, do).Because(err)
}
