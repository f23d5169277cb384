package braid.internal.memory;

import braid.internal.resource.Rendezvous;
import braid.model.Place;
import java.util.ArrayList;
import java.util.List;

/// A rendezvous whose exchanges also compare the members' calls, so that a difference is reported
/// rank by rank without another exchange.
record AgreeingRendezvous(Rendezvous rendezvous, Members members, Call call) implements Rendezvous {
  private static final char SEPARATOR = '\0';

  @Override
  public Place place() {
    return rendezvous.place();
  }

  @Override
  public List<Integer> ranks() {
    return rendezvous.ranks();
  }

  @Override
  public String unique() {
    return rendezvous.unique();
  }

  /// Exchanges values. Members are at the same call if its name is the same, and the call's value
  /// holds everything else that they must agree on, so the label is ignored.
  @Override
  public List<String> exchange(String label, String value) {
    var calls = new ArrayList<String>();
    var values = new ArrayList<String>();
    for (var each : rendezvous.exchange(call.name(), call.value() + SEPARATOR + value)) {
      int end = each.indexOf(SEPARATOR);
      calls.add(each.substring(0, end));
      values.add(each.substring(end + 1));
    }
    members.requireSame(call.name(), calls);
    return values;
  }
}
