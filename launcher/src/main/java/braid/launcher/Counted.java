package braid.launcher;

/// Numbers with their noun: `1 cell`, `2 cells`.
public final class Counted {
  private Counted() {}

  public static String of(long count, String noun) {
    return of(count, noun, noun + "s");
  }

  public static String of(long count, String one, String several) {
    return count + " " + (count == 1 ? one : several);
  }
}
