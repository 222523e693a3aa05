export const usage = `Usage: roboco-sidecar [command]

Gives every labelled agent container throwaway Postgres, Redis and Mongo siblings, and takes them away with it.

Commands:
  run            watch the Docker Engine and serve its agents (the default)
  sweep          remove sandboxes that have no living owner, once, and exit
  healthcheck    exit 0 when the running sidecar is ready, else 1
  manifest ROLE  print the gateway manifest of a role

Options:
  --help         print this text
  --version      print the version

Configuration is read from the environment: ROBOCO_SANDBOX_DB_ENABLED=true makes it act, DOCKER_HOST names the Engine.
docs/configuration.md lists every variable.
`;
