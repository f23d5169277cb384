package braid.launcher.session;

import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// Session that the tests of a class use one after the other. A test that fails or leaves a dead
/// rank ends it, and the next test gets a new one.
final class SharedSession implements BeforeEachCallback, AfterEachCallback, AfterAllCallback {
  private final Supplier<Session> start;
  private @Nullable Session session;

  SharedSession(Supplier<Session> start) {
    this.start = start;
  }

  Session get() {
    return Objects.requireNonNull(session);
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    if (session == null) {
      session = start.get();
    }
  }

  @Override
  public void afterEach(ExtensionContext context) {
    if (context.getExecutionException().isPresent() || get().ranks().death().isPresent()) {
      close();
    }
  }

  @Override
  public void afterAll(ExtensionContext context) {
    close();
  }

  private void close() {
    if (session != null) {
      session.close();
      session = null;
    }
  }
}
