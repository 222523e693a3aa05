#!/bin/sh
# A stand-in's entrypoint with the contract of the official image's: root becomes the user redis for the server.
set -e

if [ "${1#-}" != "$1" ] || [ "${1%.conf}" != "$1" ]; then set -- redis-server "$@"; fi

drop=
if [ "$1" = redis-server ]; then
  # Debian's server refuses the network while it has no password; the official image's is built without that.
  case " $* " in
    *protected-mode* | *' --version '* | *' -v '* | *' --help '* | *' -h '* | *' --test-memory '*) ;;
    *) set -- "$@" --protected-mode no ;;
  esac
  if [ "$(id -u)" = 0 ]; then
    find . \! -user redis -exec chown redis {} +
    drop='setpriv --reuid=redis --regid=redis --clear-groups'
  fi
  umask 0077
fi
exec $drop "$@"
