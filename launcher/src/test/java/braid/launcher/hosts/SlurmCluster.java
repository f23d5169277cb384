package braid.launcher.hosts;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// Slurm on hosts of this machine, all of which are its nodes. The controller is on the first.
public final class SlurmCluster {
  private static final String DAEMONS =
      """
      set -e
      munged --force --key-file="$1/munge.key" --socket=/run/munge.socket \
        --pid-file=/run/munged.pid --log-file=/run/munged.log --seed-file=/run/munged.seed
      [ "$2" != h1 ] || slurmctld -f "$1/slurm.conf"
      slurmd -N "$2" -f "$1/slurm.conf"
      """;

  /// Cores that each node claims.
  private static final int CORES = 4;

  private static final long POLL_NANOS = 50_000_000;

  private final NamespaceHosts hosts;
  private final Path folder;

  /// @param folder directory of its configuration
  public SlurmCluster(NamespaceHosts hosts, int nodes, Path folder)
      throws IOException, InterruptedException {
    this.hosts = hosts;
    this.folder = folder;
    var lines =
        IntStream.rangeClosed(1, nodes)
            .mapToObj(
                node ->
                    "NodeName=%s NodeAddr=%s CPUs=%d State=UNKNOWN"
                        .formatted(NamespaceHosts.name(node), hosts.address(node), CORES))
            .toList();
    Files.writeString(
        folder.resolve("slurm.conf"), configuration(hosts.address(1), String.join("\n", lines)));
    Files.writeString(
        folder.resolve("cgroup.conf"),
        "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nCgroupMountpoint=/sys/fs/cgroup\n");
    var key = new byte[128];
    new SecureRandom().nextBytes(key);
    Files.write(folder.resolve("munge.key"), key);
    Files.setPosixFilePermissions(
        folder.resolve("munge.key"), PosixFilePermissions.fromString("rw-------"));
    for (int node = 1; node <= nodes; node++) {
      NamespaceHosts.run(
          hosts.command(
              node,
              folder,
              List.of("sh", "-c", DAEMONS, "sh", folder.toString(), NamespaceHosts.name(node))));
    }
    while (call("sinfo", "--noheader", "--Node", "--responding", "--states=idle").lines().count()
        < nodes) {
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /// `config_overrides` lets a node of few cores claim more. A batch job does not wait for others
  /// to be scheduled together. Nothing needs control groups.
  private static String configuration(String address, String nodes) {
    return """
        ClusterName=braid
        SlurmctldHost=h1(%1$s)
        SlurmUser=root
        SlurmdUser=root
        AuthType=auth/munge
        AuthInfo=socket=/run/munge.socket
        MpiDefault=none
        ProctrackType=proctrack/linuxproc
        TaskPlugin=task/none
        JobAcctGatherType=jobacct_gather/none
        AccountingStorageType=accounting_storage/none
        SelectType=select/cons_tres
        SelectTypeParameters=CR_Core
        SchedulerType=sched/builtin
        SchedulerParameters=batch_sched_delay=0
        SlurmctldPidFile=/run/slurmctld.pid
        SlurmctldLogFile=/run/slurmctld.log
        SlurmdPidFile=/run/slurmd.pid
        SlurmdLogFile=/run/slurmd.log
        StateSaveLocation=/run
        SlurmdSpoolDir=/run
        SlurmdParameters=config_overrides
        SwitchType=switch/none
        ReturnToService=2
        %2$s
        PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
        """
        .formatted(address, nodes);
  }

  /// Calls a program of Slurm on the first node and returns its output.
  public String call(String... command) throws IOException, InterruptedException {
    var all = new ArrayList<>(List.of("env", "SLURM_CONF=" + folder.resolve("slurm.conf")));
    all.addAll(List.of(command));
    return NamespaceHosts.run(hosts.command(1, folder, all)).strip();
  }

  /// Waits for the end of a job and returns its state: `COMPLETED`, `CANCELLED` or `FAILED`.
  public String end(String job) throws IOException, InterruptedException {
    while (true) {
      var state = call("squeue", "--noheader", "--jobs", job, "--states=all", "--format=%T");
      if (!state.matches("PENDING|CONFIGURING|RUNNING|COMPLETING")) {
        return state;
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }
}
