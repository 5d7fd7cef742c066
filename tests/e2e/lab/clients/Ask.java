// Ask HTTP_1_1|HTTP_2 URL...: asks with the token of the environment; prints the protocol and the
// status of each.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;

public class Ask {
  public static void main(String[] arguments) throws Exception {
    HttpClient client =
        HttpClient.newBuilder().version(HttpClient.Version.valueOf(arguments[0])).build();
    for (String url : Arrays.copyOfRange(arguments, 1, arguments.length)) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(url))
          .header("Authorization", "Bearer " + System.getenv("TOKEN"))
          .timeout(Duration.ofSeconds(15)).build();
      try {
        HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(response.version() + " " + response.statusCode());
        System.out.println(response.body());
      } catch (IOException error) {
        System.out.println("error " + error);
      }
    }
    System.exit(0);
  }
}
