import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Ruler;

/** Asks event-ruler: a line [pattern, event] of JSON texts becomes a line true, false or error. */
public final class EventRuler {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        InputStreamReader bytes = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(bytes);
        for (String line; (line = lines.readLine()) != null; ) {
            JsonNode pair = json.readTree(line);
            try {
                out.println(Ruler.matchesRule(pair.get(1).asText(), pair.get(0).asText()));
            } catch (Exception error) {
                out.println("error");
            }
        }
        out.flush();
    }
}
