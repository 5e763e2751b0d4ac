#!/usr/bin/env bash
# Builds the programs that only the simulator and the tests need, each from its nested module
# beside this file, at the versions pinned there. Needs Go and coreutils/util-linux, nothing else.
#
#   tools/build.sh NAME… [OUTDIR]
#
# NAME is one of the programs in recipe below, or "all". OUTDIR is told from a name by a slash in
# it ("./out"); without one, binaries go to ${BASTIDE_CACHE:-$HOME/.cache/bastide}/bin.
# Stdout gets the path of each binary, one a line, and nothing else; all talk goes to stderr.
# A binary already there from the same recipe, pins and Go is kept, so calling this always is cheap.
# Exit code: 0 all there, 1 a build failed, 2 wrong use.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=(kube-apiserver kubectl scw talosctl)
flags=(-mod=readonly -trimpath -buildvcs=false)
# Pure Go, as these projects release them: no C compiler needed, runs on any Linux.
export CGO_ENABLED=0 GOWORK=off

# recipe NAME sets, for one program: its nested module, the package of its main, build tags,
# -X stamps, and what a first build costs on two cores (measured, see README.md).
recipe() {
	tags='' stamps=''
	case $1 in
	kube-apiserver | kubectl)
		module=kubernetes package=k8s.io/kubernetes/cmd/$1
		# From a module these are "v0.0.0-master+$Format:…": only Kubernetes' own scripts fill them.
		# Tree state "archive" is what those scripts say of sources without their git history.
		for where in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
			stamps+=" -X $where.gitVersion=v1.36.3 -X $where.gitMajor=1 -X $where.gitMinor=36"
			stamps+=" -X $where.gitCommit= -X $where.gitTreeState=archive"
		done
		cost='about 5 minutes (kubectl after kube-apiserver: half a minute)'
		;;
	scw)
		module=scw package=github.com/scaleway/scaleway-cli/v2/cmd/scw
		# Build metadata (after "+") makes it no release in its own eyes: a release asks the internet
		# for a newer version after each command and reports its panics. Tests must not.
		stamps=" -X main.Version=2.40.0+bastide"
		cost='about 2 minutes'
		;;
	talosctl)
		# Needs no stamp: the machinery module carries name and tag as embedded files.
		module=talosctl package=github.com/siderolabs/talos/cmd/talosctl
		tags=grpcnotrace # as in Talos' own build
		cost='about 4 minutes'
		;;
	*) return 1 ;;
	esac
}

# fingerprint prints what a binary is made from. Two equal prints mean equal binaries.
fingerprint() {
	{
		cat "$here/$module/go.mod" "$here/$module/go.sum"
		echo "$package" "${flags[@]}" "$tags" "$stamps"
		go version
		go env GOOS GOARCH CGO_ENABLED
	} | sha256sum | cut -d' ' -f1
}

# build NAME OUTDIR leaves OUTDIR/NAME built from the current pins.
build() (
	name=$1 out=$2
	recipe "$name"
	stamp=$out/.$name.built
	# One builder per program: a second one waits, then finds the work done.
	# The kernel drops the lock with its holder, so what a killed build left can be swept here.
	exec 9>"$out/.$name.lock"
	flock 9
	rm -rf "$out/.build-$name."*
	print=$(cd "$here/$module" && fingerprint)
	if [[ -x $out/$name && -f $stamp && $(<"$stamp") == "$print" ]]; then
		return 0
	fi
	echo "building $name; $cost the first time on two idle cores" >&2
	scratch=$(mktemp -d "$out/.build-$name.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	(cd "$here/$module" && go build "${flags[@]}" -tags "$tags" -ldflags "-s -w$stamps" \
		-o "$scratch/$name" "$package") || {
		echo "build.sh: $name was not built: go build failed as printed above." \
			"Its pins are in tools/$module/go.mod; a first build must reach a Go module proxy." >&2
		return 1
	}
	echo "$print" >"$scratch/stamp"
	# Rename replaces the file in one step and leaves a running copy alone. Binary before stamp:
	# cut between the two, the next call builds again.
	mv -f "$scratch/$name" "$out/$name"
	mv -f "$scratch/stamp" "$stamp"
)

usage() {
	echo "build.sh: $1. Use: tools/build.sh NAME… [OUTDIR], NAME one of: ${programs[*]} all;" \
		"OUTDIR has a slash in it, such as ./out" >&2
	exit 2
}

main() {
	local names=() out='' arg
	for arg in "$@"; do
		[[ -z $out ]] || usage "arguments after the output directory $out"
		if [[ $arg == */* ]]; then
			out=$arg
		elif [[ $arg == all ]]; then
			names+=("${programs[@]}")
		elif recipe "$arg"; then
			names+=("$arg")
		else
			usage "no program is called $arg"
		fi
	done
	[[ ${#names[@]} -gt 0 ]] || usage "no program named"
	for arg in go flock sha256sum; do
		command -v "$arg" >/dev/null || { echo "build.sh: $arg is not installed; install it and run this again" >&2; exit 1; }
	done
	out=${out:-${BASTIDE_CACHE:-$HOME/.cache/bastide}/bin}
	mkdir -p "$out"
	out=$(cd "$out" && pwd)
	for arg in "${names[@]}"; do
		build "$arg" "$out"
		echo "$out/$arg"
	done
}

main "$@"
exit # bash reads a script as it runs it: nothing after this line, should the file change meanwhile
