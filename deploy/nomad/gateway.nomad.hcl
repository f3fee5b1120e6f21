# nomad job run deploy/nomad/gateway.nomad.hcl     Not run: no Nomad was available where this file was written.
# Gateways: the driver raw_exec with an unprivileged user, the package `atoll` and libpq5 on the client. /etc/atoll/cluster of each machine
# has ca.crt, ca.key and database, owned by that user, mode 0700.
job "atoll-gateway" {
  datacenters = ["dc1"]
  type        = "system"

  constraint {
    attribute = "${meta.atoll}"
    value     = "gateway"
  }

  group "gateway" {
    network {
      mode = "host"
      port "http" { static = 7070 }
      port "tunnels" { static = 7071 }
    }

    task "gateway" {
      driver       = "raw_exec"
      user         = "atoll"
      kill_timeout = "45s"

      config {
        command = "/usr/bin/atoll"
        args    = ["serve"]
      }

      env {
        ATOLL_CLUSTER_ROLE     = "gateway"
        ATOLL_CLUSTER_NAME     = "${node.unique.name}"
        ATOLL_CLUSTER_DATABASE = "postgresql://atoll@postgres.example.org/atoll"
        ATOLL_LISTEN           = "0.0.0.0:7070"
        ATOLL_STATE            = "/var/lib/atoll-gateway"
        ATOLL_RUN              = "${NOMAD_TASK_DIR}/run"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
