#!/usr/bin/env bash
# A stand-in's entrypoint with the contract of the official image's: its environment, two-phase first start, messages.
set -Eeuo pipefail
shopt -s nullglob

# NAME or NAME_FILE, but not both.
from_file() {
  local name=$1 file=$1_FILE default=${2-}
  if [ -n "${!name-}" ] && [ -n "${!file-}" ]; then
    echo >&2 "error: both $name and $file are set (but are exclusive)"
    exit 1
  fi
  local value=${!name:-$default}
  if [ -n "${!file-}" ]; then value=$(<"${!file}"); fi
  export "$name"="$value"
  unset "$file"
}

if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi

if [ "$1" = postgres ]; then
  mkdir -p "$PGDATA" || :
  chmod 700 "$PGDATA" || :
  mkdir -p /var/run/postgresql || :
  chmod 3775 /var/run/postgresql || :
  if [ "$(id -u)" = 0 ]; then
    chown -R postgres: "$PGDATA" /var/run/postgresql
    exec gosu postgres "${BASH_SOURCE[0]}" "$@"
  fi

  if [ -s "$PGDATA/PG_VERSION" ]; then
    printf '\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n\n'
  else
    from_file POSTGRES_PASSWORD
    from_file POSTGRES_USER postgres
    from_file POSTGRES_DB "$POSTGRES_USER"
    from_file POSTGRES_INITDB_ARGS
    method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    if [ -z "$POSTGRES_PASSWORD" ] && [ "$method" != trust ]; then
      echo >&2 'Error: Database is uninitialized and superuser password is not specified.'
      echo >&2 '       You must specify POSTGRES_PASSWORD to a non-empty value for the superuser.'
      exit 1
    fi

    eval "set_initdb=(${POSTGRES_INITDB_ARGS})"
    initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") "${set_initdb[@]}"
    printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

    # The temporary server: the same arguments, but nothing listens except the unix socket.
    PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -w start \
      -o "$([ $# -lt 2 ] || printf '%q ' "${@:2}") -c listen_addresses='' -p ${PGPORT:-5432}"
    psql=(psql -v ON_ERROR_STOP=1 --no-psqlrc --username "$POSTGRES_USER" --no-password)
    export PGPASSWORD=${PGPASSWORD:-$POSTGRES_PASSWORD}
    exists=$("${psql[@]}" --dbname postgres --tuples-only --set db="$POSTGRES_DB" \
      <<<"SELECT 1 FROM pg_database WHERE datname = :'db';")
    if [ -z "$exists" ]; then
      "${psql[@]}" --dbname postgres --set db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
    fi
    for file in /docker-entrypoint-initdb.d/*; do
      case $file in
        *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
        *.sql) "${psql[@]}" --dbname "$POSTGRES_DB" --file "$file" ;;
        *.sql.gz) gunzip -c "$file" | "${psql[@]}" --dbname "$POSTGRES_DB" ;;
        *) echo "$0: ignoring $file" ;;
      esac
    done
    PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -m fast -w stop
    unset PGPASSWORD
    printf '\nPostgreSQL init process complete; ready for start up.\n\n'
  fi
fi

exec "$@"
