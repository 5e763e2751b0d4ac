package api

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed catalogue/rdb_node_types.csv
var rdbNodeTypesCSV string

//go:embed catalogue/rdb_settings.csv
var rdbSettingsCSV string

// rdbNodeType is an offer for database nodes. Those of the first generation
// have a local volume of a fixed size; all take block storage.
type rdbNodeType struct {
	Name, Generation, Range string
	CPUs                    int
	Memory, Local           int64 // bytes; Local is 0 without a local volume
}

// rdbEngine is an engine in one major version. Its identifier as an upgrade's
// target is one for each minor version; only the newest is on sale.
type rdbEngine struct {
	Family, Version, Minor string
	ID                     string
	Upstream, EndOfLife    string    // days
	OnSale                 time.Time // here, as far as recordings tell
	Disabled               bool
	settings, init         []rdbOption
}

func (e *rdbEngine) name() string { return e.Family + "-" + e.Version }

// rdbOption is something that can be set on an engine.
type rdbOption struct {
	name, kind, standard, unit, constraint string
	hot                                    bool
	intMin, intMax, floatMin, floatMax     *float64
}

// rdbEngines are listed newest first, as the API does.
var rdbEngines = sync.OnceValue(func() []*rdbEngine {
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	old := day(2020, 1, 1)
	engines := []*rdbEngine{
		{Family: "MySQL", Version: "8", Minor: "8.0.43", Upstream: "2018-04-08", EndOfLife: "2028-04-01", OnSale: old},
		{Family: "PostgreSQL", Version: "17", Minor: "17.9", Upstream: "2024-09-26", EndOfLife: "2029-11-08", OnSale: day(2025, 9, 15)},
		{Family: "PostgreSQL", Version: "16", Minor: "16.13", Upstream: "2023-09-14", EndOfLife: "2028-11-09", OnSale: day(2025, 3, 15)},
		{Family: "PostgreSQL", Version: "15", Minor: "15.17", Upstream: "2022-10-13", EndOfLife: "2027-11-11", OnSale: old},
		{Family: "PostgreSQL", Version: "14", Minor: "14.22", Upstream: "2021-09-30", EndOfLife: "2026-11-12", OnSale: old},
		{Family: "PostgreSQL", Version: "13", Minor: "13.23", Upstream: "2020-09-24", EndOfLife: "2025-11-13", OnSale: old, Disabled: true},
		{Family: "PostgreSQL", Version: "12", Minor: "12.22", Upstream: "2019-10-03", EndOfLife: "2024-11-14", OnSale: old, Disabled: true},
		{Family: "PostgreSQL", Version: "11", Minor: "11.22", Upstream: "2018-10-18", EndOfLife: "2023-11-09", OnSale: old, Disabled: true},
		{Family: "PostgreSQL", Version: "10", Minor: "10.23", Upstream: "2017-10-05", EndOfLife: "2022-11-10", OnSale: old, Disabled: true},
		{Family: "PostgreSQL", Version: "9.6", Minor: "9.6.24", Upstream: "2016-09-29", EndOfLife: "2021-11-11", OnSale: old, Disabled: true},
	}
	options := rows(rdbSettingsCSV)
	for n, e := range engines {
		e.ID = fmt.Sprintf("%08x-7264-4062-8000-%012x", 0xeb000000+n, 17*n+1)
		for _, r := range options {
			if r["engine"] != e.Family || !slices.Contains(strings.Split(r["versions"], "|"), e.Version) {
				continue
			}
			o := rdbOption{name: r["name"], kind: r["type"], standard: r["default"], unit: r["unit"], constraint: r["constraint"], hot: r.int("hot") == 1,
				intMin: r.limit("int_min"), intMax: r.limit("int_max"), floatMin: r.limit("float_min"), floatMax: r.limit("float_max")}
			if r.int("init") == 1 {
				e.init = append(e.init, o)
			} else {
				e.settings = append(e.settings, o)
			}
		}
	}
	return engines
})

// limit is a bound, or nil where there is none.
func (r row) limit(k string) *float64 {
	if r[k] == "" {
		return nil
	}
	f := r.float(k)
	return &f
}

var rdbNodeTypes = sync.OnceValue(func() (types []*rdbNodeType) {
	for _, r := range rows(rdbNodeTypesCSV) {
		types = append(types, &rdbNodeType{Name: r["name"], Generation: r["generation"], Range: r["range"], CPUs: int(r.int("vcpus")),
			Memory: r.int("memory_gb") << 30, Local: r.int("lssd_gb") * 1e9})
	}
	return types
})

func findNodeType(name string) (*rdbNodeType, bool) {
	for _, t := range rdbNodeTypes() {
		if strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return nil, false
}

const (
	rdbSmallest = 5e9
	rdbLargest  = 10e12
)

// volume settles what a node stores on: a local volume has the size that its
// node type gives it, block storage the size asked for.
func (t *rdbNodeType) volume(kind string, size int64) (rdbVolume, error) {
	switch kind {
	case "", "lssd":
		if t.Local == 0 {
			return rdbVolume{}, invalid("volume_type", "constraint", t.Name+" has no local volume; use sbs_5k or sbs_15k")
		}
		if size != 0 && size != t.Local {
			return rdbVolume{}, invalid("volume_size", "constraint", fmt.Sprintf("the local volume of %s has %d bytes", t.Name, t.Local))
		}
		return rdbVolume{"lssd", t.Local}, nil
	case "sbs_5k", "sbs_15k":
		if size < rdbSmallest || size > rdbLargest || size%1e9 != 0 {
			return rdbVolume{}, invalid("volume_size", "constraint", "block storage comes in whole gigabytes, from 5 to 10000")
		}
		return rdbVolume{kind, size}, nil
	}
	return rdbVolume{}, invalid("volume_type", "constraint", kind+" is not a valid value")
}

// engines are those on sale at the region's date.
func (c *call) engines() []*rdbEngine {
	today := c.opts.Today
	return slices.DeleteFunc(slices.Clone(rdbEngines()), func(e *rdbEngine) bool { return !today.IsZero() && e.OnSale.After(today) })
}

func (c *call) engine(name string) (*rdbEngine, bool) {
	for _, e := range c.engines() {
		if strings.EqualFold(e.name(), name) {
			return e, true
		}
	}
	return nil, false
}

// newerEngines are what an instance can be upgraded to, oldest first.
func (c *call) newerEngines(name string) (newer []*rdbEngine) {
	for _, e := range c.engines() {
		if e.name() == name {
			slices.Reverse(newer)
			return newer
		}
		if strings.HasPrefix(name, e.Family+"-") && !e.Disabled {
			newer = append(newer, e)
		}
	}
	return nil
}

func viewUpgrade(e *rdbEngine) doc {
	return doc{"id": e.ID, "name": e.name(), "version": e.Version, "minor_version": e.Minor}
}

func listEngines(c *call) (any, error) {
	families, name, version := []doc{}, c.query("name"), c.query("version")
	for _, family := range []string{"MySQL", "PostgreSQL"} {
		versions := []doc{}
		for _, e := range c.engines() {
			if e.Family == family && (version == "" || e.Version == version) {
				versions = append(versions, doc{"name": e.name(), "version": e.Version, "end_of_life": e.EndOfLife + "T00:00:00Z",
					"release_date": e.Upstream + "T00:00:00Z", "disabled": e.Disabled, "beta": false,
					"available_settings": views(e.settings, viewRDBOption), "available_init_settings": views(e.init, viewRDBOption)})
			}
		}
		if len(versions) > 0 && (name == "" || strings.EqualFold(family, name)) {
			families = append(families, doc{"name": family, "region": c.regionName(), "versions": versions,
				"logo_url": "https://s3.nl-ams.scw.cloud/scw-rdb-logos/" + strings.ToLower(family) + ".svg"})
		}
	}
	return doc{"engines": list(page(c, families, "page_size", 20)), "total_count": len(families)}, nil
}

func viewRDBOption(o rdbOption) doc {
	return doc{"name": o.name, "default_value": o.standard, "hot_configurable": o.hot, "description": "Sets " + o.name + ".",
		"property_type": o.kind, "unit": orNull(o.unit), "string_constraint": orNull(o.constraint),
		"int_min": o.intMin, "int_max": o.intMax, "float_min": o.floatMin, "float_max": o.floatMax}
}

// check refuses settings that the engine does not have or take.
func (e *rdbEngine) check(settings []rdbSetting, init bool) error {
	options := e.settings
	if init {
		options = e.init
	}
	for _, s := range settings {
		n := slices.IndexFunc(options, func(o rdbOption) bool { return o.name == s.Name })
		if n < 0 {
			return invalid("settings", "constraint", s.Name+" is no setting of "+e.name())
		}
		if !options[n].takes(s.Value) {
			return invalid("settings", "constraint", s.Name+" does not take the value "+s.Value)
		}
	}
	return nil
}

func (o rdbOption) takes(value string) bool {
	within := func(min, max *float64) bool {
		f, err := strconv.ParseFloat(value, 64)
		return err == nil && (min == nil || f >= *min) && (max == nil || f <= *max)
	}
	switch o.kind {
	case "INT":
		_, err := strconv.ParseInt(value, 10, 64)
		return err == nil && within(o.intMin, o.intMax)
	case "FLOAT":
		return within(o.floatMin, o.floatMax)
	case "STRING":
		rx, err := regexp.Compile(o.constraint)
		return err != nil || rx.MatchString(value)
	}
	return true
}

func listNodeTypes(c *call) (any, error) {
	out := []doc{}
	for _, t := range rdbNodeTypes() {
		volumes := []doc{}
		if t.Local > 0 {
			volumes = append(volumes, doc{"type": "lssd", "class": "lssd", "description": "Local SSD", "min_size": t.Local, "max_size": t.Local, "chunk_size": t.Local})
		}
		for _, kind := range []string{"sbs_5k", "sbs_15k"} {
			volumes = append(volumes, doc{"type": kind, "class": "sbs", "description": "Block Storage", "min_size": int64(rdbSmallest), "max_size": int64(rdbLargest), "chunk_size": int64(5e9)})
		}
		out = append(out, doc{"name": strings.ToLower(t.Name), "stock_status": "available", "description": fmt.Sprintf("%d vCPUs, %d GB", t.CPUs, t.Memory>>30),
			"vcpus": t.CPUs, "memory": t.Memory, "volume_constraint": doc{"min_size": int64(rdbSmallest), "max_size": int64(rdbLargest)},
			"is_bssd_compatible": false, "disabled": false, "beta": false, "available_volume_types": volumes, "is_ha_required": false,
			"generation": t.Generation, "instance_range": t.Range, "region": c.regionName()})
	}
	return doc{"node_types": list(page(c, out, "page_size", 20)), "total_count": len(out)}, nil
}
