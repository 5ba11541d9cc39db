#!/bin/sh
# One streamed answer of `ingot serve` with curl: stream.sh [QUESTION]. INGOT_URL names the server.
curl --no-buffer --fail-with-body --silent "${INGOT_URL:-http://127.0.0.1:8080}/v1/chat/completions" \
    -H 'Content-Type: application/json' -H "Authorization: Bearer ${INGOT_API_KEY:-none}" \
    -d "{\"model\":\"ingot\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"${1:-What is 12 + 30?}\"}]}"
