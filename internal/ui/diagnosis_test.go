package ui

import "testing"

func TestDiagnosis(t *testing.T) {
	golden(t, "diagnosis", []string{"text", "ascii", "color", "json"}, func(p Printer, _ *clock) {
		p.Diagnosis(Diagnosis{Estate: "staging", Sentence: "1 of 3 checks could not be made, 1 thing found in the others", Checks: []Examined{
			{Name: "open-ports", State: "well"},
			{Name: "unused-volumes", State: "found", Findings: []Finding{{What: "volume scratch (5f2e) in fr-par-1", Why: "it is paid for and no server has it",
				Fix: "if what is on it is not needed: scw block volume delete 5f2e zone=fr-par-1"}}},
			{Name: "default-route", State: "unread", Unread: "the gateways could not be listed: Scaleway answered 403"},
		}})
	})
}
