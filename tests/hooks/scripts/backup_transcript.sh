#!/bin/bash
# Keep the whole conversation before it is summarised.
transcript=$(jq -r .transcript_path)
mkdir -p backups && cp "$transcript" backups/
