// Renders a template of krew-release-bot as the bot documents it: krewtemplate TEMPLATE TAG SUMS.
// The checksum of an archive is looked up in the file SUMS, where the bot downloads the archive.
package main

import (
	"fmt"
	"log"
	"os"
	"path"
	"strings"
	"text/template"
)

type release struct{ TagName string }

func main() {
	log.SetFlags(0)
	file, tag, sums := os.Args[1], release{os.Args[2]}, checksums(os.Args[3])

	addURIAndSha := func(url, tagName string) (string, error) {
		address, err := render(template.New("url"), url, release{tagName})
		if err != nil {
			return "", err
		}
		sum, ok := sums[path.Base(address)]
		if !ok {
			return "", fmt.Errorf("%s: no checksum", address)
		}
		// The bot indents the second line by four spaces.
		return "uri: " + address + "\n    sha256: " + sum, nil
	}

	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	functions := template.FuncMap{"addURIAndSha": addURIAndSha}
	manifest, err := render(template.New(file).Funcs(functions), string(text), tag)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(manifest)
}

func render(t *template.Template, text string, values release) (string, error) {
	parsed, err := t.Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var rendered strings.Builder
	err = parsed.Execute(&rendered, values)
	return rendered.String(), err
}

// checksums reads lines of sha256sum, by the name of the file.
func checksums(file string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			sums[fields[1]] = fields[0]
		}
	}
	return sums
}
