package braid.natives.cuda;

/// A failed native call: the call, the error's name and text, the owner and device, and a remedy if
/// one is known.
public final class GpuError extends RuntimeException {
  private final String call;
  private final int code;
  private final String name;

  public GpuError(String call, int code, String name, String text, String place, String remedy) {
    super(
        "%s failed: %s (%s)%s%s"
            .formatted(
                call,
                name,
                text,
                place.isEmpty() ? "" : " on " + place,
                remedy.isEmpty() ? "" : "; " + remedy));
    this.call = call;
    this.code = code;
    this.name = name;
  }

  public String call() {
    return call;
  }

  public int code() {
    return code;
  }

  public String name() {
    return name;
  }
}
