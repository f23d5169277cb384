package braid.launcher.kernel.channels;

/// A socket of a kernel, by its task in Jupyter's protocol.
public enum Channel {
  SHELL("ROUTER"),
  CONTROL("ROUTER"),
  STDIN("ROUTER"),
  IOPUB("XPUB"),
  HEARTBEAT("REP"),

  /// Not served: the kernel connects to whoever started it.
  REGISTRATION("DEALER");

  final String socketType;

  Channel(String socketType) {
    this.socketType = socketType;
  }
}
