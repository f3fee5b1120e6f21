# nomad job run deploy/nomad/node.nomad.hcl     Not run: no Nomad was available where this file was written.
# Nodes: one for each machine with the meta value. The machine has joined (`atoll node join`) and has the package `atoll`; Nomad
# starts the daemon as root, and the keeper outlives it, as with systemd. Nomad has no hook that runs before a task is stopped:
# type `atoll node drain NAME --move --wait` before `nomad node drain`.
job "atoll-node" {
  datacenters = ["dc1"]
  type        = "system"

  constraint {
    attribute = "${meta.atoll}"
    value     = "node"
  }

  group "node" {
    network {
      mode = "host"
    }

    task "node" {
      driver       = "raw_exec"
      user         = "root"
      kill_timeout = "45s"

      config {
        command = "/usr/bin/atoll"
        args    = ["serve"]
      }

      env {
        ATOLL_CLUSTER_ROLE     = "node"
        ATOLL_CLUSTER_NAME     = "${node.unique.name}"
        ATOLL_CLUSTER_GATEWAYS = "gateway-1.example.org:7071,gateway-2.example.org:7071"
      }
    }
  }
}
