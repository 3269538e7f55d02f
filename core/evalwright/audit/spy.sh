# The spy of the leak test for places without Python: needs find and grep, as busybox has them, and reads as spy.py does.
# Given before it: seconds, workspace, exchange, and encoded (how a canary begins in hexadecimal digits and in base64; a
# dot stands in each, so that this script is no find itself).
# It reports finds in an encoded form without their place, since it cannot decode, and is not complete where it met
# compressed files that it has no program to unpack.
mark=EVALWRIGHT
mark=$mark-CANARY-
token='CANARY-[a-z-]*-[0-9a-f]\{16\}'
started=$(date +%s)
tab=$(printf '\t')
unlisted='its names cannot be listed, but whoever knows one can reach it'
packed='there is no program to unpack it'
forms=
for form in $encoded; do forms="$forms -e ${form%%.*}${form#*.}"; done
text=
if echo x | grep -a x >/dev/null 2>&1; then text=-a; fi

# hits HOW PATH: reads bytes from stdin, prints a line for each canary.
hits() {
    grep $text -o "$token" 2>/dev/null | sort -u | while IFS= read -r found; do
        rest=${found#CANARY-}
        printf 'hit\t%s\t%s\t%s\t%s\n' "${rest%-*}" "${rest##*-}" "$1" "$2"
    done
}

# look PATH: searches one file.
look() {
    if grep -qF -e "$mark" -- "$1" 2>/dev/null; then hits plain "$1" <"$1"; fi
    if grep -qF $forms -- "$1" 2>/dev/null; then printf 'hit\tunknown\t\tencoded\t%s\n' "$1"; fi
    case $1 in
    *.gz | *.tgz)
        if command -v gzip >/dev/null; then gzip -dc "$1" 2>/dev/null | hits compressed "$1"; else printf 'left\t%s\t%s\n' "$packed" "$1"; fi ;;
    *.zip | *.xz | *.bz2 | */objects/pack/*.pack | */objects/[0-9a-f][0-9a-f]/*) printf 'left\t%s\t%s\n' "$packed" "$1" ;;
    esac
}

late() { [ $(($(date +%s) - started)) -ge "$seconds" ]; }

# walk ROOT: searches every file below a directory, and the names.
walk() {
    find "$1" \( -path /proc -o -path /sys -o -path '/proc/*/root/proc' -o -path '/proc/*/root/sys' \) -prune -o -print \
        2>/dev/null | {
        files=0
        while IFS= read -r path; do
            case $path in *"$mark"*) printf '%s\n' "${path##*/}" | hits name "$path" ;; esac
            if [ -f "$path" ] && [ ! -L "$path" ] && [ -r "$path" ]; then
                files=$((files + 1))
                look "$path"
                if [ $((files % 64)) -eq 0 ] && late; then
                    printf 'late\n'
                    break
                fi
            elif [ -d "$path" ] && [ ! -L "$path" ] && [ -x "$path" ] && [ ! -r "$path" ]; then
                printf 'left\t%s\t%s\n' "$unlisted" "$path"
            fi
        done
        printf 'files\t%s\n' "$files"
    }
}

all() {
    env | hits plain 'environment variables'
    walk "$workspace"
    walk "$exchange"
    ours=$(ls -di / | sed 's/^ *//; s/ .*//')
    for process in /proc/[0-9]*; do
        for name in environ cmdline cgroup mountinfo; do
            tr '\0' '\n' <"$process/$name" 2>/dev/null | hits plain "$process/$name"
        done
        for open in "$process"/fd/*; do
            if [ -f "$open" ]; then look "$open"; fi
        done
        if [ "$(ls -di "$process/root/" 2>/dev/null | sed 's/^ *//; s/ .*//')" != "$ours" ]; then walk "$process/root/"; fi
    done 2>/dev/null
    for place in "$(dirname "$(dirname "$workspace")")" "$HOME" "$TMPDIR" /tmp /dev/shm /home /root /; do
        if late; then
            printf 'late\n'
            break
        fi
        if [ -d "$place" ]; then walk "$place"; fi
    done
}

# A line is said once; what was counted is added up, and the last line says that the search ended.
all | awk -F "$tab" -v started="$started" '
    $1 == "files" { files += $2; next }
    $1 == "late" { incomplete = 1; next }
    $1 == "left" { incomplete = 1; if (seen[$0]++ || left++ >= 100) next; print; next }
    !seen[$0]++ { print; fflush() }
    END { printf "done\t%d\t0\t", files; incomplete = incomplete ? 0 : 1; printf "%s\n", incomplete }
' | while IFS= read -r line; do
    case $line in
    "done$tab"*) printf '%s\t%s\t%s\n' "${line%"$tab"*}" "$(($(date +%s) - started))" "${line##*"$tab"}" ;;
    *) printf '%s\n' "$line" ;;
    esac
done
