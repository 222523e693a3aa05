#!/usr/bin/env bash
# A stand-in's entrypoint with the contract of the official image's, over FerretDB: its environment, its two-phase
# first start with a temporary server on the final port of the loopback, without authentication.
set -Eeuo pipefail
shopt -s nullglob

if [ "${1:0:1}" = - ]; then set -- mongod "$@"; fi
if [ "$1" != mongod ]; then exec "$@"; fi

if [ "$(id -u)" = 0 ]; then
  chown -R 999:999 /data/db /data/configdb
  exec gosu 999:999 env HOME=/data/db "${BASH_SOURCE[0]}" "$@"
fi

for name in MONGO_INITDB_ROOT_USERNAME MONGO_INITDB_ROOT_PASSWORD; do
  file=${name}_FILE
  if [ -n "${!name-}" ] && [ -n "${!file-}" ]; then
    echo >&2 "error: both $name and $file are set (but are exclusive)"
    exit 1
  fi
  if [ -n "${!file-}" ]; then export "$name"="$(<"${!file}")"; fi
done
user=${MONGO_INITDB_ROOT_USERNAME-} password=${MONGO_INITDB_ROOT_PASSWORD-}
if [ -n "$user$password" ] && { [ -z "$user" ] || [ -z "$password" ]; }; then
  echo >&2 'error: missing MONGO_INITDB_ROOT_USERNAME or MONGO_INITDB_ROOT_PASSWORD'
  exit 1
fi

# Of mongod's options only those that say where to listen mean something here.
port=27017 address=0.0.0.0
for ((i = 2; i <= $#; i++)); do
  next=$((i + 1))
  case ${!i} in
    --port) port=${!next} ;;
    --port=*) port=${!i#*=} ;;
    --bind_ip) address=${!next} ;;
    --bind_ip=*) address=${!i#*=} ;;
  esac
done
case $address in '*' | *,*) address=0.0.0.0 ;; esac

server=(ferretdb --handler=sqlite --sqlite-url=file:/data/db/ --state-dir=/data/db --debug-addr=- --telemetry=disable)

scripts=(/docker-entrypoint-initdb.d/*.sh /docker-entrypoint-initdb.d/*.js)
if [ ! -e /data/db/state.json ] && { [ -n "$user" ] || [ ${#scripts[@]} -gt 0 ]; }; then
  "${server[@]}" --listen-addr=127.0.0.1:27017 &
  temporary=$!
  for ((i = 0; i < 300; i++)); do
    if (exec 3<>/dev/tcp/127.0.0.1/27017) 2>/dev/null; then break; fi
    kill -0 "$temporary"
    sleep 0.1
  done
  for script in "${scripts[@]}"; do
    case $script in
      *.sh) . "$script" ;;
      *.js) mongosh --quiet "mongodb://127.0.0.1:27017/${MONGO_INITDB_DATABASE:-test}" "$script" ;;
    esac
  done
  kill -INT "$temporary"
  wait "$temporary" || :
  printf '\nMongoDB init process complete; ready for start up.\n\n'
fi

if [ -n "$user" ]; then
  server+=(--test-enable-new-auth)
  # It makes this user before it listens, where there is none yet.
  export FERRETDB_SETUP_DATABASE=admin FERRETDB_SETUP_USERNAME=$user FERRETDB_SETUP_PASSWORD=$password
fi
unset "${!MONGO_INITDB_@}"
exec "${server[@]}" --listen-addr="$address:$port"
